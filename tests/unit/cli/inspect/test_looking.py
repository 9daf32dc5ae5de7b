"""`ls`, `show` and `stats` on real tapes: what they print, refuse and survive."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.golden import check_screen
from tests.support.views import ANSWERED, ASKED, header, wire_exchanges

from wiretape.analyze.report import StatsReport
from wiretape.cli.main import main
from wiretape.model.http import BytesBody, Response, body_bytes
from wiretape.tape.writing.writer import write_tape


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "WIRETAPE_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """captures/subagents.tape in a directory of its own, which is the current one."""
    (tmp_path / "captures").mkdir()
    monkeypatch.chdir(tmp_path)
    write_tape("captures/subagents.tape", header(), wire_exchanges())
    return "captures/subagents.tape"


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(argv)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("cli-stats", ("stats", "captures/subagents.tape")),
        ("cli-show", ("show", "captures/subagents.tape")),
        ("cli-show-4", ("show", "captures/subagents.tape", "4")),
        ("cli-show-x1", ("show", "captures/subagents.tape", "x1")),
    ],
)
def test_screens_of_a_real_tape(
    tape: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: int,
    name: str,
    argv: tuple[str, ...],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("wiretape.adapters.prices.price_list", lambda started: None)  # prices change, screens do not
    code, out, err = run(capsys, *argv)
    assert (code, err) == (0, "")
    check_screen(f"{name}-{columns}", out)


def test_stats_json_is_the_report(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "stats", tape, "--json")
    assert (code, err) == (0, "")
    report = StatsReport.model_validate_json(out)
    assert (report.calls, report.agents, report.tool_calls, len(report.turns)) == (4, 2, 2, 1)
    turn = json.loads(out)["turns"][0]
    assert turn["user"] == ASKED
    assert turn["usage"]["unknown_calls"] == 2
    first, last = turn["steps"][0], turn["steps"][-1]
    assert [first["usage"][field] for field in ("input", "output", "reasoning", "cached")] == [347, 75, 18, None]
    assert [last["usage"][field] for field in ("input", "cached", "output")] == [462, 256, 31]
    assert [step["usage"] for step in turn["steps"][1:3]] == [None, None]
    assert all(step["why"] for step in turn["steps"])


def test_stats_of_several_tapes_are_told_apart(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "stats", tape, tape)
    assert out.count(f"== {tape}\n") == 2
    _, out, _ = run(capsys, "stats", tape, tape, "--json")
    assert [(one["tape"], one["stats"]["calls"]) for one in json.loads(out)] == [(tape, 4), (tape, 4)]


def test_a_call_can_be_named_by_number_or_exchange(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "show", tape, "4") == run(capsys, "show", tape, "x5")


def test_raw_is_byte_for_byte(tape: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["show", tape, "1", "--raw"]) == 0
    out = capfdbinary.readouterr().out
    exchange = wire_exchanges()[1]
    assert exchange.response is not None
    assert body_bytes(exchange.request.body) in out
    assert body_bytes(exchange.response.body) in out
    assert out.startswith(b"POST https://api.deepseek.com/v1/responses HTTP/1.1\ncontent-type: application/json\n\n{")


def test_show_json_of_tape_call_and_exchange(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    overview = json.loads(run(capsys, "show", tape, "--json")[1])
    assert [len(x["calls"]) for x in overview["exchanges"]] == [0, 1, 1, 1, 1]
    call = json.loads(run(capsys, "show", tape, "4", "--json")[1])
    assert call["answer"][0]["blocks"][0]["text"] == ANSWERED
    assert call["new_from"] == 4
    exchange = json.loads(run(capsys, "show", tape, "x1", "--json")[1])
    assert (exchange["response"]["body"], exchange["calls"]) == ({"json": {"data": []}}, [])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("5", "has no call 5; it has calls 1 to 4 and exchanges x1 to x5"),
        ("0", "has no call 0; it has"),
        ("x9", "has no exchange x9; it has calls 1 to 4 and exchanges x1 to x5"),
        ("last", "CALL is 'last': use the number of a model call, such as 2, or an exchange, such as x3"),
        ("²", "CALL is '²'"),
        ("99999999999999", "CALL is '99999999999999'"),
    ],
)
def test_a_call_that_is_not_there_says_what_is(
    tape: str, capsys: pytest.CaptureFixture[str], call: str, said: str
) -> None:
    code, out, err = run(capsys, "show", tape, call)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("show", "1", "{tape}"), "the tape goes first; did you mean: wiretape show {tape} 1"),
        (("show", "x3", "{tape}"), "the tape goes first; did you mean: wiretape show {tape} x3"),
        (("stats", "{tape}", "1"), "1 is a call; did you mean: wiretape show {tape} 1"),
        (("stats", "x2", "{tape}"), "x2 is a call; did you mean: wiretape show {tape} x2"),
    ],
)
def test_a_call_in_a_tapes_place_says_how_it_is_shown(
    tape: str, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, *(word.format(tape=tape) for word in argv))
    assert (code, out) == (2, "")
    assert err.endswith(f"{said.format(tape=tape)}\n")
    Path("1").write_bytes(Path(tape).read_bytes())  # a tape of such a name is a tape
    assert run(capsys, "stats", "1", tape)[0] == 0


@pytest.mark.parametrize("argv", [("--raw",), ("1", "--raw", "--json"), ("1", "--raw", "--full")])
def test_options_that_do_not_go_together_are_refused(
    tape: str, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]
) -> None:
    code, out, err = run(capsys, "show", tape, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("wiretape: --raw ")


BROKEN = {
    "empty.tape": b"",
    "text.tape": b"hello, I am no tape\n",
    "other.tape": b'{"some": "json"}\n',
    "newer.tape": b'{"wiretape": 99, "started": "2026-02-28T07:05:30Z", "recorder": "wiretape 9"}\n',
    "binary.tape": bytes(range(256)),
    "broken.tape.zst": b"\x28\xb5\x2f\xfd nonsense",
}


@pytest.mark.parametrize("command", ["stats", "show"])
@pytest.mark.parametrize("name", [*BROKEN, "missing.tape"])
def test_a_file_that_cannot_be_read_is_one_line_and_2(
    tape: str, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    if name in BROKEN:
        Path(name).write_bytes(BROKEN[name])
    code, out, err = run(capsys, command, name)
    assert (code, out) == (2, ""), err
    assert err.startswith("wiretape: ")
    assert name in err
    assert err.count("\n") == 1
    assert "internal error" not in err


def test_a_directory_is_told_apart_from_a_tape(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "show", "captures") == (
        2,
        "",
        "wiretape: captures is a directory; to see the tapes in it: wiretape ls captures\n",
    )


def test_a_tape_cut_in_the_middle_is_shown_with_a_warning(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = Path(tape).read_bytes()
    Path(tape).write_bytes(data[: len(data) - 200])
    code, out, err = run(capsys, "stats", tape)
    assert code == 0
    assert err.startswith("wiretape: warning: ")
    assert err.count("\n") == 1
    assert "4 calls" in out


def test_a_tape_of_no_calls_says_so(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_tape("none.tape", header(), wire_exchanges()[:1])
    code, out, _ = run(capsys, "stats", "none.tape")
    assert (code, out.splitlines()[0]) == (0, "No model calls on this tape.")
    assert "has no call 1; it has no model calls and exchange x1" in run(capsys, "show", "none.tape", "1")[2]


def test_standard_input_is_a_tape_too(
    tape: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stdin:
        buffer = io.BytesIO(Path(tape).read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert "4 calls" in run(capsys, "stats", "-")[1]
    Stdin.buffer = io.BytesIO(b"")
    code, _, err = run(capsys, "stats", "-")
    assert code == 2
    assert "standard input" in err
    assert "stdin.tape" not in err


def test_ls_lists_what_is_there_and_what_is_broken(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("captures/empty.tape").write_bytes(b"")
    Path("captures/notes.txt").write_bytes(b"not listed")
    code, out, err = run(capsys, "ls")
    assert (code, err) == (2, "")
    lines = out.splitlines()
    assert lines[0].split() == ["tape", "started", "turns", "calls", "exchanges", "size"]
    assert lines[1].split()[:1] == ["captures/empty.tape"]
    assert "empty" in lines[2]
    assert lines[3].split()[:6] == ["captures/subagents.tape", "2026-02-28", "07:05", "1", "4", "5"]
    assert lines[-1] == "2 tapes, 1 of them unreadable"
    entries = json.loads(run(capsys, "ls", "captures", "--json")[1])
    assert [entry["calls"] for entry in entries] == [None, 4]
    assert entries[0]["problem"]
    assert entries[1]["models"] == ["deepseek-flash"]


def test_ls_without_captures_looks_here_and_not_into_hidden_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "ls")
    assert (code, out) == (0, "")
    assert err == "no tapes under .; to make one: wiretape record -o captures/NAME.tape -- CMD\n"
    for place in ("sub/deep", ".hidden", "node_modules/x"):
        (tmp_path / place).mkdir(parents=True)
        write_tape(tmp_path / place / "a.tape", header(), wire_exchanges())
    assert [e["path"] for e in json.loads(run(capsys, "ls", "--json")[1])] == [str(Path("sub/deep/a.tape"))]


def test_ls_of_no_such_directory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "ls", str(tmp_path / "nowhere"))
    assert code == 2
    assert err.endswith("nowhere: no such directory\n")


def test_a_pipe_that_closes_early_ends_quietly(tape: str) -> None:
    command = [sys.executable, "-m", "wiretape.cli.main", "show", tape, "1", "--full"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.slow
def test_a_pipe_gets_no_colour_and_a_forced_one_does(tape: str) -> None:
    command = [sys.executable, "-m", "wiretape.cli.main", "stats", tape]
    plain = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"\x1b" not in plain
    forced = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "FORCE_COLOR": "1"}).stdout
    assert b"\x1b[" in forced


def test_200_calls_are_counted_well_within_two_seconds(tape: str) -> None:
    from tests.support.views import loop_exchanges

    write_tape("long.tape", header(), loop_exchanges(200))
    before = os.times().children_user
    done = subprocess.run([sys.executable, "-m", "wiretape.cli.main", "stats", "long.tape"], capture_output=True)
    assert b"200 calls" in done.stdout
    # Of the processor's time, since the machine may be busy. This notices work that grows with the square.
    assert os.times().children_user - before < 10


def test_raw_on_a_terminal_is_not_obeyed_by_it(
    tape: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = replace(wire_exchanges()[0], response=Response(200, body=BytesBody(b"\x1b[2J\xff\x9b1m")))
    write_tape("hostile.tape", header(), [hostile])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, _ = run(capsys, "show", "hostile.tape", "x1", "--raw")
    assert code == 0
    assert r"\x1b[2J\xff\x9b1m" in out


@pytest.mark.parametrize("columns", ["80", "45"])
def test_a_path_is_never_folded_by_ls(
    columns: str, tape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    long = tmp_path / "captures" / ("a_directory_of_a_module_" * 2) / f"{'a_test_of_a_long_name_' * 2}.tape"
    long.parent.mkdir(parents=True)
    long.write_bytes(Path(tape).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert main(["ls"]) == 0
    assert str(long.relative_to(tmp_path)) in capsys.readouterr().out.splitlines()
