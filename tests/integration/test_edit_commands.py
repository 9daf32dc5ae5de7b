"""The commands `wiretape redact`, `cut` and `merge`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wiretape.cli.main import main
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.writing.writer import write_tape

SECRET = "zX81-plain-Credential-77-without-shape"
Run = Callable[..., tuple[int, str, str]]


def exchange(number: int, path: str = "/v1/chat/completions") -> Exchange:
    body = JsonBody({"model": "m", "messages": [{"role": "user", "content": f"question {number}"}]})
    answer = {
        "id": f"r{number}",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
    }
    json_type = Headers([("content-type", "application/json")])
    return Exchange(
        number,
        number * 1000,
        Request("POST", f"https://api.example{path}", json_type, body),
        Response(200, json_type, number * 1000 + 10, JsonBody(answer)),
        Ended.COMPLETE,
        number * 1000 + 20,
    )


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """Calls 1 to 3 are exchanges 1, 2 and 4; exchange 3 is telemetry."""
    path = tmp_path / "a.tape"
    header = Header(wiretape=VERSION, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test", parent=None)
    telemetry = exchange(3, "/telemetry")
    telemetry = replace(telemetry, request=replace(telemetry.request, body=JsonBody({"events": []})), response=None)
    write_tape(path, header, [exchange(1), exchange(2), telemetry, exchange(4)])
    return path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        out = capsys.readouterr()
        return code, out.out, out.err

    return run


def numbers(path: Path) -> list[int]:
    return [exchange.number for exchange in read_tape(path).exchanges]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--exchanges", "1-2,4"], [1, 2, 4]),
        (["--exchanges", "x3"], [3]),
        (["--calls", "3"], [4]),
        (["--calls", "1", "--exchanges", "3"], [1, 3]),
        (["--from", "2s"], [2, 3, 4]),
        (["--to", "2s"], [1]),
        (["--from", "1500ms", "--to", "0m3.5s"], [2, 3]),
        (["--calls", "1-3", "--from", "2"], [2, 4]),
    ],
)
def test_cut(run: Run, tape: Path, options: list[str], kept: list[int]) -> None:
    code, out, err = run("cut", tape, "-o", "part.tape", *options)
    assert (code, out) == (0, "")
    assert err == f"wiretape: {len(kept)} of 4 exchanges written to part.tape\n"
    assert numbers(Path("part.tape")) == kept
    assert read_tape("part.tape").header.parent == "a.tape"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "say what to keep: --exchanges 1-5,8, --calls 1-3, --from 1m or --to 2m30s"),
        (["--exchanges", "1-x"], "--exchanges 1-x: '1-x' is not a number or range; write it like 1-5,8"),
        (["--exchanges", "5-1"], "--exchanges 5-1: 5-1 is reversed; write 1-5"),
        (["--exchanges", "3-7"], "a.tape: has no exchange 5; its exchanges are 1-4"),
        (["--calls", "9"], "a.tape: has no call 9; its calls are 1-3"),
        (
            ["--from", "soon"],
            "--from soon: is not a time; write it like 90s, 1m30s or 500ms, counted from the tape's start",
        ),
        (["--from", "9s"], "a.tape: none of its 4 exchanges is asked for; nothing was written"),
    ],
)
def test_bad_cuts_are_one_clear_line(run: Run, tape: Path, options: list[str], message: str) -> None:
    code, out, err = run("cut", "a.tape", "-o", "part.tape", *options)
    assert (code, out, err) == (2, "", f"wiretape: {message}\n")
    assert not Path("part.tape").exists()


def test_nothing_is_overwritten_by_mistake(run: Run, tape: Path) -> None:
    Path("there.tape").write_text("precious")
    message = "wiretape: there.tape exists already, and nothing was written; --force replaces it\n"
    for command in (["cut", "a.tape", "--exchanges", "1"], ["merge", "a.tape", "a.tape"], ["redact", "a.tape"]):
        assert run(*command, "-o", "there.tape") == (2, "", message)
        assert Path("there.tape").read_text() == "precious"
    assert run("cut", "a.tape", "--exchanges", "1", "-o", "there.tape", "--force")[0] == 0
    assert numbers(Path("there.tape")) == [1]


def test_out_must_be_a_place_for_a_file(run: Run, tape: Path, tmp_path: Path) -> None:
    code, _, err = run("cut", "a.tape", "--exchanges", "1", "-o", tmp_path)
    assert (code, err) == (2, f"wiretape: {tmp_path} is a directory: name a tape in it, such as {tmp_path}/new.tape\n")
    code, _, err = run("cut", "a.tape", "--exchanges", "1", "-o", "no/where.tape")
    assert (code, err) == (2, "wiretape: cannot write no/where.tape: the directory no does not exist\n")


def test_merge_keeps_an_exchange_of_both_tapes_once(run: Run, tape: Path) -> None:
    assert run("cut", "a.tape", "--exchanges", "1-3", "-o", "part.tape")[0] == 0
    code, out, err = run("merge", "part.tape", "a.tape", "-o", "all.tape")
    written = "wiretape: 4 exchanges of 2 tapes written to all.tape\n"
    shared = "wiretape: 3 exchanges were on several tapes, and are kept once\n"
    assert (code, out, err) == (0, "", written + shared)
    merged = read_tape("all.tape")
    assert [(e.number, e.at) for e in merged.exchanges] == [(n, n * 1000) for n in range(1, 5)]
    assert run("merge", "a.tape", "-o", "one.tape")[2] == "wiretape: name two tapes or more to merge\n"


@pytest.mark.parametrize("command", [["cut", "--exchanges", "1"], ["merge", "none.tape"], ["redact"]])
def test_a_missing_tape_is_named(run: Run, tmp_path: Path, command: list[str]) -> None:
    code, out, err = run(*command, "none.tape", "-o", "out.tape")
    assert (code, out) == (2, "")
    assert err.startswith("wiretape: none.tape: no such file")
    assert not Path("out.tape").exists()


def test_redact_reports_the_replaced_secrets(run: Run, tape: Path) -> None:
    text = tape.read_text()
    tape.write_text(text.replace("question 2", f"question 2, {SECRET}").replace("question 4", "CUST-77 and CUST-78"))
    Path("pyproject.toml").write_text("[tool.wiretape]\nredact = ['CUST-\\d+']\n")
    code, out, err = run("redact", "a.tape", "--pattern", SECRET)
    assert (code, out) == (0, "     3  pattern\n")
    assert err == "wiretape: replaced 3 values in a.tape\n"
    assert SECRET not in tape.read_text()
    bodies = [e.request.body for e in read_tape(tape).exchanges]
    assert isinstance(bodies[3], JsonBody)
    assert bodies[3].value["messages"][0]["content"] == "[redacted:pattern:2] and [redacted:pattern:3]"
    assert run("redact", "a.tape") == (0, "", "wiretape: no secret found; a.tape is as it was\n")


def test_redact_check_names_the_places_and_writes_nothing(run: Run, tape: Path) -> None:
    assert run("redact", "--check", "a.tape") == (0, "", "wiretape: no secret found in a.tape\n")
    value = "Zx81kqLmP02wErTyUiOpAsDf"
    tape.write_text(tape.read_text().replace("question 2", f"DB_PASSWORD={value}"))
    before = tape.read_bytes()
    code, out, err = run("redact", "--check", "a.tape")
    assert (code, out) == (1, "x2  request.body.messages[0].content  db_password\n")
    assert err == "wiretape: a.tape holds secrets in 1 place\n  to replace them: wiretape redact a.tape\n"
    assert tape.read_bytes() == before
    assert run("redact", "a.tape")[0] == 0
    assert run("redact", "--check", "a.tape")[0] == 0
    assert value not in tape.read_text()


def test_redact_refuses_a_bad_pattern_or_setting(run: Run, tape: Path, tmp_path: Path) -> None:
    before = tape.read_bytes()
    code, _, err = run("redact", "a.tape", "--pattern", "a(")
    assert code == 2
    assert err.startswith("wiretape: the redaction pattern 'a(' is not a regular expression: missing )")
    Path("pyproject.toml").write_text("[tool.wiretape]\nreduct = []\n")
    code, _, err = run("redact", "a.tape")
    assert code == 2
    assert err == (
        f"wiretape: {tmp_path}/pyproject.toml: [tool.wiretape]: unknown key 'reduct'; "
        "known keys: check, hosts, lint, mask, max_age, max_age_action, redact, redact_tool_arguments, sealed\n"
    )
    assert tape.read_bytes() == before
