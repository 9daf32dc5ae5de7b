"""Wrapped tools in programs that the command line starts: `record` records them, `replay` answers without running
them."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from wiretape.cli.main import main
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.mcp.tool_exchange import tool_answer_of, tool_call_of

pytestmark = [
    pytest.mark.proxy,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of mitmproxy's own
]
AGENT = """
    import sys
    import wiretape

    @wiretape.tool
    def weather(city):
        print("RAN", file=open(sys.argv[1], "a"))
        return {"city": city, "degrees": 7}

    weather(sys.argv[2])
    weather("Rome")
"""


def test_a_programs_tools_are_recorded_and_answered(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    agent, ran, tape = tmp_path / "agent.py", tmp_path / "ran", tmp_path / "t.tape"
    agent.write_text(textwrap.dedent(AGENT), encoding="utf-8")
    cmd = [sys.executable, str(agent), str(ran)]
    assert main(["record", "--no-stats", "-o", str(tape), "--", *cmd, "Bern"]) == 0
    made = [(tool_call_of(one), getattr(tool_answer_of(one), "value", None)) for one in read_tape(tape).exchanges]
    assert made == [
        (("weather", {"city": "Bern"}), {"city": "Bern", "degrees": 7}),
        (("weather", {"city": "Rome"}), {"city": "Rome", "degrees": 7}),
    ]
    ran.unlink()
    assert main(["replay", str(tape), "--", *cmd, "Bern"]) == 0
    assert not ran.exists()
