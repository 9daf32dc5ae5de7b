"""What a program prints, marked with the call that was answered last."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.adapters.launch.child import run_child
from wiretape.adapters.launch.tagging import CallTags, TaggedLines, TaggingDoor
from wiretape.cli.main import main

CAPTURES = Path(__file__).parents[4] / "captures"


def test_each_line_gets_the_tag_of_the_moment_when_it_begins() -> None:
    number: list[int | None] = [None]
    lines = TaggedLines(lambda: number[0])
    assert lines.feed(b"before\n") == b"[-] before\n"
    number[0] = 1
    assert lines.feed(b"one\ntwo") == b"[1] one\n[1] two"
    number[0] = 2
    assert lines.feed(b" goes on\n\nthree\n") == b" goes on\n[2] \n[2] three\n"


def test_a_prompt_without_a_line_end_and_a_progress_bar_are_not_held_back() -> None:
    lines = TaggedLines(lambda: 3)
    assert lines.feed(b"10%\r20%") == b"[3] 10%\r20%"
    assert lines.feed(b"\r30%\n") == b"\r30%\n"


def test_what_is_no_text_passes_as_it_is() -> None:
    lines = TaggedLines(lambda: 3)
    assert lines.feed(b"text\n") == b"[3] text\n"
    assert lines.feed(b"\x89PNG\0\n\0\n") == b"\x89PNG\0\n\0\n"
    assert lines.feed(b"and\non\n") == b"and\non\n"


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_nothing_is_lost_however_it_is_cut(chunks: list[bytes]) -> None:
    cut, whole = TaggedLines(lambda: 7), TaggedLines(lambda: 7)
    came = b"".join(cut.feed(chunk) for chunk in chunks)
    data = b"".join(chunks)
    if b"\0" not in data:
        assert came == whole.feed(data)
    assert came.replace(b"[7] ", b"") == data.replace(b"[7] ", b"")


class _Recorder:
    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def begin(self, method: str, url: str, http: str | None, headers: object) -> int:
        self.told.append(("begin", url))
        return len([one for one in self.told if one[0] == "begin"])

    def request_data(self, x: int, data: bytes) -> None:
        self.told.append(("data", x, data))

    def request_end(self, x: int) -> None:
        self.told.append(("end", x))

    def response(self, x: int, status: int, headers: object) -> None:
        self.told.append(("response", x))

    def bypassed(self, host: str) -> None:
        self.told.append(("bypassed", host))


def test_a_door_counts_model_calls_alone_and_passes_everything_on() -> None:
    tags, recorder = CallTags(), _Recorder()
    door = TaggingDoor(recorder, tags)  # type: ignore[arg-type]
    page = door.begin("GET", "https://api.openai.com/v1/models", "1.1", [])
    door.request_end(page)
    first = door.begin("POST", "https://api.openai.com/v1/responses", "1.1", [("content-type", "application/json")])
    door.request_data(first, b'{"model": "m", "input": "hel')
    door.request_data(first, b'lo"}')
    door.request_end(first)
    second = door.begin("POST", "https://api.openai.com/v1/chat/completions", "1.1", [])
    door.request_end(second)
    assert tags() is None
    door.response(second, 200, [])
    assert tags() == 2
    door.response(first, 200, [])
    assert tags() == 1
    door.response(page, 200, [])
    assert tags() == 1
    tags.answered_more(2)
    assert tags() == 4
    door.bypassed("pypi.org")
    assert recorder.told[-1] == ("bypassed", "pypi.org")


def test_both_streams_are_tagged_and_stay_apart(capfd: pytest.CaptureFixture[str]) -> None:
    program = "import sys; print('a', end=''); print('b'); print('c', file=sys.stderr); sys.exit(5)"
    import os

    assert run_child([sys.executable, "-c", program], os.environ, tag=lambda: 4) == 5
    out, err = capfd.readouterr()
    assert (out, err) == ("[4] ab\n", "[4] c\n")


def test_a_replayed_programs_lines_carry_the_calls_of_the_tape(capfd: pytest.CaptureFixture[str]) -> None:
    agent = (
        "import subprocess, sys; print('starts', flush=True); "
        "subprocess.run([sys.executable, '-m', 'wiretape.demo.subagents'])"
    )
    assert main(["replay", "--tag", str(CAPTURES / "subagents.tape"), "--", sys.executable, "-c", agent]) == 0
    first, second = capfd.readouterr().out.splitlines()
    assert first == "[-] starts"
    assert second.startswith("[4] ")
