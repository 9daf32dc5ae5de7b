"""Tags in front of the lines that a program prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.adapters.launch.child import TaggedLines, run_child
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
