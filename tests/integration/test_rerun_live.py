"""`wiretape rerun` against itself and against endpoints on loopback: the table, JSON, exit codes, a new tape."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.scripted import Scripted, asks, says, scripted_model

import wiretape
from wiretape import read_tape
from wiretape.cli.main import main
from wiretape.demo.upstream import serve
from wiretape.tape.journal import journal

CAPTURES = Path(__file__).parents[2] / "captures"
ONE_TOOL = CAPTURES / "weather-one-tool.tape"
TWO_TOOLS = CAPTURES / "route-two-tools.tape"


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with scripted_model() as server:
        yield server


def test_a_capture_is_equal_to_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rerun", str(ONE_TOOL)]) == 0
    out = capsys.readouterr().out
    assert out.endswith("3 calls (1 given, 2 equal): equal\n")
    assert all(len(line) <= 80 for line in out.splitlines()[1:])


def test_an_incomplete_tape_is_never_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.tape"
    cut.write_bytes(ONE_TOOL.read_bytes()[:-200])
    assert main(["rerun", str(cut)]) == 1
    out = capsys.readouterr().out
    assert "the tape is incomplete, only its exchanges were compared:\n" in out
    assert out.endswith(": equal as far as the tape goes\n")


def test_a_tape_is_replaced_only_once_an_answer_has_come(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scripted: Scripted
) -> None:
    made, one = tmp_path / "made.tape", str(CAPTURES / "introduction.tape")
    dead = "http://127.0.0.1:9"
    assert main(["rerun", one, "--base-url", dead, "-o", str(made)]) == 2
    assert not made.exists()  # the next attempt finds no tape in its way
    made.write_bytes(ONE_TOOL.read_bytes())
    assert main(["rerun", one, "--base-url", dead, "-o", str(made), "--force"]) == 2
    assert made.read_bytes() == ONE_TOOL.read_bytes()
    assert main(["rerun", str(made), "--base-url", scripted.url, "-o", str(made), "--force"]) == 2
    assert "is the tape that is rerun: give the new one another name" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.tape"]


def test_a_tape_without_model_calls_gets_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wiretape.record(tmp_path / "x.tape"):
        wiretape.tool(len)([1])
    assert main(["rerun", str(tmp_path / "x.tape")]) == 2
    assert "has no model calls to rerun" in capsys.readouterr().err


def test_json_lists_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rerun", str(TWO_TOOLS), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["equal"], report["live"], report["stopped"]) == (True, None, [])
    assert [(call["call"], call["outcome"]) for call in report["calls"]] == [(1, "given"), (2, "equal"), (3, "equal")]
    assert report["calls"][0]["asks"][0]["name"] == "mojitianqi-DayWeather"


@pytest.mark.parametrize("name", ["route-two-tools", "subagents", "clock-thinking"])
def test_the_same_model_live_produces_an_equal_run_and_its_tape(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "new.tape"
    with serve() as upstream:
        assert main(["rerun", str(CAPTURES / f"{name}.tape"), "--base-url", upstream.url, "-o", str(made)]) == 0
    told = capsys.readouterr()
    assert "equal; recorded as" in told.out
    assert told.err.count("\n") == len(read_tape(made).exchanges)  # a line for each call while it goes on
    tape = read_tape(made)
    assert tape.header.parent is not None
    assert (made.parent / tape.header.parent).resolve() == (CAPTURES / f"{name}.tape").resolve()
    assert main(["rerun", str(made)]) == 0


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every journal fail once an answer has begun."""
    written = journal._write_record

    def write(descriptor: int, head: bytes, payload: bytes) -> None:
        if head.startswith(b"from "):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(descriptor, head, payload)

    monkeypatch.setattr(journal, "_write_record", write)


def test_a_new_tape_that_is_incomplete_gives_exit_code_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, fork = tmp_path / "new.tape", tmp_path / "fork.tape"
    fill_disk(monkeypatch)
    with serve() as upstream:
        assert main(["rerun", str(TWO_TOOLS), "--base-url", upstream.url, "-o", str(made)]) == 4
        assert f"{made} IS INCOMPLETE" in capsys.readouterr().err
        assert main(["fork", str(TWO_TOOLS), "2", "--base-url", upstream.url, "-o", str(fork)]) == 4
        assert f"{fork} IS INCOMPLETE" in capsys.readouterr().err
        assert main(["rerun", str(TWO_TOOLS), "--base-url", upstream.url]) == 0


def test_another_model_diverges_and_the_table_shows_where(
    scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.answers = [says("It will be fine."), says("Take the bus.")]
    assert main(["rerun", str(TWO_TOOLS), "--model", "other-1", "--base-url", f"{scripted.url}/v1"]) == 1
    out = capsys.readouterr().out
    assert "the runs part: the model answered instead of calling tools: It will be fine." in " ".join(out.split())
    assert "the runs part at call 1" in out
    path, _, body = scripted.seen[0]
    assert (path, body["model"]) == ("/v1/chat/completions", "other-1")


def test_an_unrecorded_tool_call_stops_the_run_unless_a_tools_file_answers(
    scripted: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.answers = [asks("lookUp", '{"place": "成都"}')]
    assert main(["rerun", str(TWO_TOOLS), "--base-url", scripted.url]) == 1
    assert 'stopped after call 1: no recorded result for lookUp({"place": "成都"})' in capsys.readouterr().out
    tools = tmp_path / "tools.py"
    tools.write_text("async def lookUp(place):\n    return {'found': place}\n", encoding="utf-8")
    scripted.answers = [asks("lookUp", '{"place": "成都"}'), says("Found.")]
    assert main(["rerun", str(TWO_TOOLS), "--base-url", scripted.url, "--tools", str(tools)]) == 1
    last = scripted.seen[-1][2]["messages"][-1]
    assert (last["role"], last["content"]) == ("tool", '{"found": "成都"}')


def test_the_key_comes_from_the_providers_variable_and_never_reaches_the_tape(
    scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-live-0123456789abcdef0123456789")
    scripted.answers = [says("Hello.")]
    made = tmp_path / "new.tape"
    main(["rerun", str(CAPTURES / "introduction.tape"), "--base-url", scripted.url, "-o", str(made)])
    assert scripted.seen[0][1]["authorization"] == "Bearer sk-live-0123456789abcdef0123456789"
    assert "sk-live-0123456789" not in made.read_text(encoding="utf-8")
    monkeypatch.setenv("MY_KEY", "other-0123456789abcdef")
    scripted.answers = [says("Hello.")]
    main(["rerun", str(CAPTURES / "introduction.tape"), "--base-url", scripted.url, "--key-env", "MY_KEY"])
    assert scripted.seen[1][1]["authorization"] == "Bearer other-0123456789abcdef"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-o", "new.tape"], "-o is for live reruns"),
        (["--base-url", "nowhere"], "--base-url nowhere needs a scheme, a host"),
        (["--live", "--tools", "missing.py"], "--tools missing.py: is not a Python file"),
        (["--base-url", "http://127.0.0.1:9"], "http://127.0.0.1:9 could not be reached"),
        (["--live", "--key-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
    ],
)
def test_an_impossible_edit_is_an_error_of_one_line(
    more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rerun", str(ONE_TOOL), *more]) == 2
    assert said in capsys.readouterr().err


def test_an_existing_tape_is_replaced_only_by_force(
    scripted: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "new.tape"
    made.write_text("mine", encoding="utf-8")
    argv = ["rerun", str(CAPTURES / "introduction.tape"), "--base-url", scripted.url, "-o", str(made)]
    assert main(argv) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert (made.read_text(encoding="utf-8"), scripted.seen) == ("mine", [])
    scripted.answers = [says("Hello.")]
    assert main([*argv, "--force"]) == 0
    assert len(read_tape(made).exchanges) == 1


# -- tools that were never wrapped: what the models were told --------------------------------------------------------


def test_a_stub_answers_with_the_results_in_the_requests_of_a_tape_without_tools() -> None:
    tape = read_tape(TWO_TOOLS)
    weather = tape.tool("mojitianqi-DayWeather")
    ((arguments, told),) = [
        (given, said) for name, given, said in _tool_calls(TWO_TOOLS) if name == "mojitianqi-DayWeather"
    ]
    assert weather(json.loads(arguments)) == json.loads(told)  # what a program wrote as JSON for the model
    assert tape.tool("mojitianqi-DayWeather", returns=str)(**json.loads(arguments)) == told
    with pytest.raises(wiretape.MissError, match="diverges from the one that call 1 asked for at arguments"):
        weather(city="Bern")


def _tool_calls(path: Path) -> list[tuple[str, str, str]]:
    from wiretape.runs.run import build_run
    from wiretape.wire.registry import decode

    run = build_run(decode(read_tape(path).exchanges))
    return [(use.call.name, use.call.arguments, use.result.text) for use in run.tool_uses if use.result is not None]
