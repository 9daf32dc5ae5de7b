"""The captures have no faults but the one that the documents tell of: a clock in a system prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiretape.analyze.lint.base import Subject
from wiretape.analyze.lint.rules import lint
from wiretape.cli.tapes import link
from wiretape.tape.reading.reader import read_tape

CAPTURES = sorted((Path(__file__).parents[4] / "captures").glob("*.tape"))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_capture_is_clean_but_for_the_clock(path: Path) -> None:
    tape = read_tape(path)
    found = lint(Subject(link(str(path), tape).run, tape.exchanges))
    if path.stem != "weather-one-tool":
        assert found == []
        return
    [finding] = found
    assert (finding.rule, finding.severity, finding.call) == ("WT013", "warning", 2)
    assert finding.path == "messages[0].content"
    assert "a clock" in finding.text
    assert finding.values == {"before": "15时05分30秒", "after": "15时23分47秒"}
