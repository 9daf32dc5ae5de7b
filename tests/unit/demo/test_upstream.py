"""The scripted upstream as a command: what the program that it runs finds in its environment."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from wiretape.demo.upstream import main

TELL = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"


def test_a_program_that_it_runs_finds_it_and_a_key_where_the_user_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-mine")
    told = tmp_path / "environ.json"
    assert main(["--", sys.executable, "-c", TELL, str(told)]) == 0
    environ = json.loads(told.read_text())
    assert environ["OPENAI_BASE_URL"].startswith("http://127.0.0.1:")
    assert (environ["OPENAI_API_KEY"], environ["DEEPSEEK_API_KEY"]) == ("none", "sk-mine")
