"""`wiretape debug` without a screen: scripts, the prompt, exit codes, notes on the disk."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import pytest

from wiretape.cli.debug.line_mode import converse, fitting
from wiretape.cli.debug.open_debugger import from_here, open_debugger
from wiretape.cli.main import main

CAPTURES = Path(__file__).parents[4] / "captures"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "WIRETAPE_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tape(tmp_path: Path) -> str:
    return str(shutil.copy(CAPTURES / "subagents.tape", tmp_path))


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["debug", *argv])
    out, err = capsys.readouterr()
    return code, out, err


def type_lines(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """A terminal at which a person types these lines, then ends the input."""
    typed = iter(lines)

    def ask(prompt: str = "") -> str:
        line = next(typed, None)
        if line is None:
            raise EOFError
        if line == "^C":
            raise KeyboardInterrupt
        return line

    monkeypatch.setattr("builtins.input", ask)


def test_a_tape_has_a_relative_path_and_its_counts_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "a-directory-with-quite-a-long-name" / "and-another-one-below-it-that-is-no-shorter"
    deep.mkdir(parents=True)
    tape = str(shutil.copy(CAPTURES / "subagents.tape", deep))
    monkeypatch.chdir(deep)
    for path in (tape, "subagents.tape"):
        lines = run(capsys, path, "--batch", "info tape")[1].splitlines()
        assert lines[:2] == ["subagents.tape", "4 calls, 1 turn, 2 agents, 2 tool calls"]
    monkeypatch.chdir(tmp_path)
    assert run(capsys, tape, "--batch", "info tape")[1].splitlines()[-2] == "4 calls, 1 turn, 2 agents, 2 tool calls"
    assert from_here(str(tmp_path / "x.tape")) == "x.tape"
    assert from_here("x.tape") == "x.tape"


def test_a_batch_breaks_continues_and_prints(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, tape, "--batch", "break tool=schedule_event; continue; print usage.input")
    assert (code, err) == (0, "")
    assert out.startswith("breakpoint 1: tool=schedule_event (true at call 1)\n\nbreakpoint 1: tool=schedule_event\n")
    assert "call 1 of 4 · at its tool schedule_event · root · turn 1\n" in out
    assert out.endswith("\n\nusage.input = 347\n")


def test_a_script_stops_at_its_first_error_and_exits_with_2(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, tape, "--batch", "print call; goto 9; print 5")
    assert code == 2
    assert "command 1 (print call): this is the start of the tape" in err
    code, out, err = run(capsys, tape, "--batch", "goto 9; print 5")
    assert (code, out) == (2, "")
    assert err == "wiretape: command 1 (goto 9): the tape has no call 9; it has calls 1 to 4\n"


def test_a_breakpoint_that_is_never_hit_is_not_an_error(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, tape, "--batch", "break input>1M; continue; when")
    assert code == 0
    assert out.endswith("the end of the tape, after the last call · stop 11 of 11\n")


def test_quit_ends_a_script(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, tape, "--batch", "print 1 + 1; quit; nonsense") == (0, "1 + 1 = 2\n", "")


def test_commands_from_a_file(tape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script"
    script.write_text("# the first call\ngoto 1\nprint input\n", encoding="utf-8")
    code, out, _ = run(capsys, tape, "-f", str(script))
    assert code == 0
    assert out.endswith("\ninput = 347\n")
    code, _, err = run(capsys, tape, "-f", str(tmp_path / "none"))
    assert code == 2
    assert "No such file" in err


@pytest.mark.parametrize("option", [[], ["-f", "-"]])
def test_commands_from_standard_input(
    tape: str, option: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("goto 4\nprint cached\n"))
    code, out, _ = run(capsys, tape, *option)
    assert code == 0
    assert out.endswith("\ncached = 256\n")


def test_two_sources_of_commands_and_a_tape_on_the_same_input_are_refused(
    tape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, tape, "--batch", "c", "-f", "x")[0] == 2
    code, _, err = run(capsys, "-", "-f", "-")
    assert code == 2
    assert "standard input is the tape" in err


def test_a_missing_tape_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "nothing.tape", "--batch", "c")
    assert (code, err) == (2, "wiretape: nothing.tape: no such file\n")


def test_every_line_fits_and_has_no_colour(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, tape, "--batch", "help; goto 4; context; diff; list; info findings; print request")
    assert "\x1b" not in out
    assert len(out.splitlines()) > 100


def test_notes_are_saved_next_to_the_unchanged_tape(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(tape).read_bytes()
    run(capsys, tape, "--batch", "goto 3; note the time zone; goto 1.1; note a tool")
    code, out, _ = run(capsys, tape, "--batch", "goto 3; info notes")
    assert code == 0
    assert "note     the time zone\n" in out
    assert "at its tool schedule_event  a tool" in out
    assert Path(tape).read_bytes() == before
    assert Path(f"{tape}.notes").exists()
    Path(f"{tape}.notes").write_text("{", encoding="utf-8")
    code, _, err = run(capsys, tape, "--batch", "c")
    assert code == 2
    assert "holds no notes" in err


def test_diff_with_another_tape_shows_where_they_diverge(
    tape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.tape"
    text = Path(tape).read_text(encoding="utf-8").replace("created '产品评审会'", "created '设计评审会'")
    other.write_text(text, encoding="utf-8")
    code, out, _ = run(capsys, tape, "--batch", f"goto 3; diff {other}")
    assert code == 0
    assert "the tapes diverge at call 3" in " ".join(out.split())
    assert "~ input[3].output, character 13" in out
    assert "to see it" not in out
    assert "- OK: created '产品评审会' at 2025-06-11T15:00:00 for 60 min" in out
    assert "+ OK: created '设计评审会' at 2025-06-11T15:00:00 for 60 min" in out


def test_diff_at_an_equal_call_shows_how_to_find_the_divergence(
    tape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "an other.tape"
    text = Path(tape).read_text(encoding="utf-8").replace("created '产品评审会'", "created '设计评审会'")
    other.write_text(text, encoding="utf-8")
    code, out, _ = run(capsys, tape, "--batch", f"goto 1; diff {other}")
    said = " ".join(out.split())
    assert code == 0
    assert "request: no difference" in said
    way = said.split("; to see it: goto 3, then ")[1].split("'")[1].replace(" ", "")
    assert way == str(other).replace(" ", "")
    code, out, _ = run(capsys, tape, "--batch", f"goto 3; diff '{other}'")
    assert code == 0
    assert "~ input[3].output, character 13" in out
    code, out, _ = run(capsys, tape, "--batch", f"diff '{other}'")
    assert code == 0
    assert "".join(out.split()).startswith(f"thetapesdivergeatcall3(call3of{other})".replace(" ", ""))


def test_findings_and_the_cache_are_those_of_the_analysis(capsys: pytest.CaptureFixture[str]) -> None:
    tape = str(CAPTURES / "weather-one-tool.tape")
    code, out, _ = run(capsys, tape, "--batch", "break cache=broken; break finding=unstable-prefix; continue")
    assert code == 0
    assert "breakpoint 1: cache=broken (true at call 2" in out
    assert "breakpoint 2: finding=unstable-prefix (true at call 2" in out
    assert "call 2 of 3 · after its answer" in out
    assert "15时05分30秒" in out


# -- the prompt --------------------------------------------------------------------------------------------------------


def test_a_conversation(tape: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    type_lines(monkeypatch, "step", "", "^C", "nonsense", "print call", "q", "never")
    converse(open_debugger(tape))
    out, err = capsys.readouterr()
    assert out.index("call 1 of 4") < out.index("call 2 of 4") < out.index("unknown command 'nonsense'")
    assert out.endswith("call = 2\n")
    assert "(wiretape) " in err  # stdout is not a terminal here, so the prompt goes to stderr


def test_findings_are_counted_at_the_start(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    type_lines(monkeypatch)
    converse(open_debugger(str(CAPTURES / "weather-one-tool.tape")))
    assert "about this run: info findings lists them" in capsys.readouterr().out


def test_the_end_of_the_input_leaves(tape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    type_lines(monkeypatch)
    converse(open_debugger(tape))


def test_line_mode_is_used_on_a_terminal_without_a_screen(
    tape: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    type_lines(monkeypatch, "when")
    code, out, _ = run(capsys, tape, "--lines")
    assert code == 0
    assert "the start of the tape, before the first call" in out


def test_the_tabulator_completes_the_word_at_the_cursor(tape: str) -> None:
    debugger = open_debugger(tape)

    def tab(line: str) -> list[str]:
        begin = line.rfind(" ") + 1
        return fitting(debugger, line, begin, len(line))

    assert tab("conti") == ["continue "]
    assert tab("break tool=s") == ["tool=schedule_event"]
    assert tab("goto tu") == ["turn 1"]
    assert tab("goto turn ") == ["1"]
    assert tab("print usage.in") == ["usage.input"]
    assert tab("zzz") == []
