"""What `wiretape record` says before anything runs. The rest is in tests/integration/test_record_cli.py."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

import wiretape.app.record  # noqa: F401  pydantic does not import where a test changes sys.version_info
from wiretape.app.record import RecordResult
from wiretape.cli.main import main
from wiretape.cli.record_report import LiveReport, _checklist, _clues, _keys, _Pace, _wrapped
from wiretape.tape.recording.recorder import RecorderSummary
from wiretape.wire.mcp.tool_exchange import ToolAnswer, tool_exchange


def test_without_mitmproxy_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 12, 0))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["record", "-o", str(tmp_path / "x.tape"), "--", "true"]) == 2
    said = capsys.readouterr().err
    assert "recording needs mitmproxy" in said
    assert "in wiretape's own folder: pip install '.[proxy]'" in said
    assert list(tmp_path.iterdir()) == []


def test_on_an_older_python_it_says_which_one_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 11, 9))
    assert main(["record", "-o", str(tmp_path / "x.tape"), "--", "true"]) == 2
    assert "recording needs Python 3.12 or later, and this is 3.11" in capsys.readouterr().err


def test_help_for_an_empty_recording_names_the_hosts_that_were_let_through() -> None:
    lines = _clues(Path("a.tape"), ["llm.example", "cdn.example"], exchanges=0)
    assert "    wiretape record --host llm.example --host cdn.example …" in lines
    assert any("wiretape show a.tape" in line for line in _clues(Path("a.tape"), [], exchanges=3))
    assert not any("pasted" in line for line in _checklist(["codex"]))
    assert any("pasted" in line for line in _checklist([]))


def test_the_checklist_names_the_program_to_ask_the_doctor_about() -> None:
    assert "    wiretape doctor -- node 'my agent.mjs'" in _checklist(["node", "my agent.mjs"])
    for argv in ([], ["agent", "x" * 80], ["python", "-c", "import a\na.main()"]):
        assert "    wiretape doctor -- CMD" in _checklist(argv)


def test_the_checklist_wraps_between_words_and_commands_stay_whole() -> None:
    lines = [part for line in _checklist(["codex"]) for part in _wrapped(line, 48)]
    assert max(len(line) for line in lines if not line.startswith("    ")) <= 48
    assert "    http://127.0.0.1:PORT/HOST/PATH, with --port to choose the port" in lines
    at = lines.index("- Does another process make the calls, which was")
    assert lines[at + 1] == "  started before, or in a container?"


def spoken(report: LiveReport, width: int, terminal: bool) -> io.StringIO:
    """What a report says from now on."""
    said = io.StringIO()
    report._console = Console(file=said, force_terminal=terminal, width=width, color_system=None)
    return said


def test_on_a_terminal_sentences_break_between_words_and_commands_stay_whole() -> None:
    report = LiveReport(Path("captures/a-tape-with-a-long-name.tape"), ["agent"], counted=False)
    said = spoken(report, 40, terminal=True)
    report.say("agent exited with 130 before any call was made (OPENAI_API_KEY is not set)")
    report.closing()
    assert said.getvalue().splitlines() == [
        "wiretape agent exited with 130 before",
        "  any call was made (OPENAI_API_KEY is",
        "  not set)",
        "wiretape next: wiretape show captures/a-tape-with-a-long-name.tape",
    ]
    said = spoken(report, 40, terminal=False)
    report.say("agent exited with 130 before any call was made")
    assert said.getvalue() == "wiretape agent exited with 130 before any call was made\n"


def test_the_summary_has_the_figures_that_stats_shows_for_the_tape(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("genai_prices", reason="needs the extra prices")
    monkeypatch.setenv("COLUMNS", "100")
    tape = Path(__file__).parents[3] / "captures" / "introduction.tape"
    report = LiveReport(tape, ["agent"])
    said = spoken(report, 100, terminal=False)
    report.closing()
    assert main(["stats", str(tape)]) == 0
    shown = capsys.readouterr().out
    assert "$" in shown
    assert shown in said.getvalue()


def test_keys_that_are_not_set_are_named() -> None:
    assert _keys({}) == " (OPENAI_API_KEY and ANTHROPIC_API_KEY are not set)"
    assert _keys({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": ""}) == " (ANTHROPIC_API_KEY is not set)"
    assert _keys({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}) == ""


def test_a_flood_of_calls_is_thinned_and_a_trickle_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    pace = _Pace(burst=10, per_second=5)
    flood = []
    for _ in range(100):
        now += 0.01
        flood.append(pace.allows())
    assert sum(flood) == pytest.approx(15, abs=1)
    now += 60
    assert all(pace.allows() for _ in range(10))


def test_the_calls_of_wrapped_tools_are_not_taken_for_models_of_an_unknown_format(tmp_path: Path) -> None:
    report = LiveReport(tmp_path / "t.tape", ["agent"])
    said = spoken(report, 100, terminal=False)
    report.exchange(tool_exchange("weather", {"city": "Bern"}, ToolAnswer("7", 7)))
    report.summary(RecordResult(0, RecorderSummary(1, (), (), incomplete=False, path=tmp_path / "t.tape"), [], []))
    assert "NO MODEL CALL WAS SEEN" in said.getvalue()
    assert "are in no known wire format" not in said.getvalue()


def test_credentials_that_the_model_wrote_are_named_and_not_shown(tmp_path: Path) -> None:
    report = LiveReport(tmp_path / "t.tape", ["agent"])
    said = spoken(report, 300, terminal=False)
    report._name_written(("password", "password", "token"))
    assert said.getvalue() == (
        "wiretape kept in tool arguments, because the model wrote them: password (2 values), token; "
        "--redact-tool-arguments replaces them, and a replay then passes placeholders to the tools\n"
    )
