"""A small project under test: a module of tests that call a model, and its tapes."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest

from wiretape.model.call import Text
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

_HEAD = '''
import os
import httpx
import openai
import pytest

def ask(text, **more):
    """The answer of the model, asked as programs do."""
    body = {"model": "counting-1", "messages": [{"role": "user", "content": text}], **more}
    return httpx.post(os.environ["MODEL_URL"] + "/chat/completions", json=body)

def said(text, **more):
    return ask(text, **more).json()["choices"][0]["message"]["content"]
'''

_WITHOUT = ("-p", "no:hypothesispytest")  # takes seconds to load, and has no part in these runs


class Project:
    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.root = pytester.path
        self.configure()

    def configure(self, *lines: str) -> None:
        """The configuration of pytest: everything that pytest can be strict about, and these lines."""
        head = "[pytest]\naddopts = --strict-markers --strict-config\n"
        if not any(line.startswith("filterwarnings") for line in lines):
            head += "filterwarnings = error\n"
        self.pytester.makeini(head + "\n".join(lines))

    def write(self, tests: str, name: str = "test_it.py") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_HEAD + textwrap.dedent(tests), encoding="utf-8")
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)  # it may be written again within a second

    def run(self, *args: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess("-p", "no:xdist", *_WITHOUT, *args)

    def run_apart(self, *args: str) -> pytest.RunResult:
        """In a separate process."""
        return self.pytester.runpytest_subprocess(*_WITHOUT, *args, timeout=120)

    def tape(self, name: str) -> Path:
        return self.root / "captures" / f"{name}.tape"

    def tapes(self) -> list[str]:
        """Everything that stands where tapes do."""
        directory = self.root / "captures"
        return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())

    def answers(self, name: str) -> list[str]:
        """What the model says on a tape."""
        calls = decode(read_tape(self.tape(name)).exchanges)
        messages = [message for call in calls if call.response for message in call.response.messages]
        return ["".join(block.text for block in one.blocks if isinstance(block, Text)) for one in messages]
