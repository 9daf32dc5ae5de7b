"""An exchange has the same identity on every tape that has it, and no other exchange has that."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.seeds import hand_made

from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody, WsMessage
from wiretape.tape.editing.edit import cut_tape, merge_tapes, moved, redact_tape
from wiretape.tape.editing.identity import identities
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.redaction import Redactor
from wiretape.tape.writing.writer import write_tape

CAPTURES = sorted((Path(__file__).parents[4] / "captures").glob("*.tape"))
STARTED = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)


def header(started: datetime = STARTED) -> Header:
    return Header(wiretape=VERSION, started=started, recorder="wiretape test")


def written(path: Path, exchanges: list[Exchange], started: datetime = STARTED) -> Tape:
    numbered = [replace(exchange, number=number) for number, exchange in enumerate(exchanges, 1)]
    write_tape(path, header(started), numbered)
    return read_tape(path)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_cuts_merges_and_redaction_keep_identities(path: Path, tmp_path: Path) -> None:
    tape = read_tape(path)
    known = identities(tape)
    assert len(set(known)) == len(known)
    cut, both = tmp_path / "cut.tape", tmp_path / "both.tape"
    cut_tape(tape, cut, lambda exchange: exchange.number > 1 or len(known) == 1, Redactor())
    assert identities(read_tape(cut)) == known[-len(read_tape(cut).exchanges) :]
    early = written(tmp_path / "early.tape", hand_made()[:2], tape.header.started - timedelta(days=1, microseconds=700))
    assert merge_tapes([read_tape(cut), early, tape], both, "w", Redactor()).shared == len(read_tape(cut).exchanges)
    merged = read_tape(both)
    assert merged.header.started == early.header.started
    assert set(identities(merged)) == set(known) | set(identities(early))
    redact_tape(both, tmp_path / "redacted.tape", Redactor())
    assert identities(read_tape(tmp_path / "redacted.tape")) == identities(merged)


@given(st.integers(0, 999_999), st.integers(0, 999_999), st.integers(-5000, 5000))
def test_the_fractions_of_a_millisecond_in_started_do_not_count(a: int, b: int, at: int) -> None:
    from tempfile import TemporaryDirectory

    one, other = (STARTED.replace(microsecond=fraction) for fraction in (a, b))
    exchange = replace(moved(hand_made()[0], at), number=1)
    with TemporaryDirectory() as directory:
        path = Path(directory, "m.tape")
        tapes = [Tape(None, header(one), (exchange,)), Tape(None, header(other), (moved(exchange, 1),))]
        merge_tapes(tapes, path, "w", Redactor())
        assert set(identities(read_tape(path))) == {*identities(tapes[0]), *identities(tapes[1])}


BASE = Exchange(
    1,
    10,
    Request("POST", "https://a.example/", Headers([("a", "1")]), JsonBody({"messages": [{"r": 1}, {"r": 2}]})),
    Response(200, Headers([("b", "2")]), 20, StreamBody((b"one", b"two"), (1, 2))),
    Ended.COMPLETE,
    30,
    (WsMessage(25, "client", JsonBody({"m": 1})),),
)


def changed(**members: Any) -> Exchange:
    return replace(BASE, **members)


def answered(**members: Any) -> Exchange:
    assert BASE.response is not None
    return replace(BASE, response=replace(BASE.response, **members))


OTHERS = {
    "start": moved(BASE, 1),
    "end": changed(ended_at=31),
    "how it ended": changed(ended=Ended.TIMEOUT),
    "method": changed(request=replace(BASE.request, method="GET")),
    "request header": changed(request=replace(BASE.request, headers=Headers([("a", "2")]))),
    "request value": changed(request=replace(BASE.request, body=JsonBody({"messages": [{"r": 1}, {"r": 3}]}))),
    "request list": changed(request=replace(BASE.request, body=JsonBody({"messages": [{"r": 1}]}))),
    "request layout": changed(
        request=replace(BASE.request, body=JsonBody({"messages": [{"r": 1}, {"r": 2}]}, "spaced"))
    ),
    "status": answered(status=201),
    "answer": answered(body=StreamBody((b"one", b"tw"), (1, 2))),
    "frames": answered(body=StreamBody((b"onet", b"wo"), (1, 2))),
    "times of frames": answered(body=StreamBody((b"one", b"two"), (1, 3))),
    "no answer": changed(response=None),
    "message": changed(messages=(WsMessage(25, "client", JsonBody({"m": 2})),)),
    "message's time": changed(messages=(WsMessage(26, "client", JsonBody({"m": 1})),)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_every_difference_gives_another_identity(what: str) -> None:
    one, other = identities(Tape(None, header(), (BASE, replace(OTHERS[what], number=2))))
    assert one != other


def test_the_number_does_not_count() -> None:
    tapes = [Tape(None, header(), (one,)) for one in (BASE, replace(BASE, number=7))]
    assert identities(tapes[0]) == identities(tapes[1])


def test_equal_exchanges_of_one_tape_are_counted(tmp_path: Path) -> None:
    tape = Tape(None, header(), tuple(replace(BASE, number=number) for number in (1, 2, 3)))
    assert len(set(identities(tape))) == 3
    out = tmp_path / "out.tape"
    assert merge_tapes([tape, tape], out, "w", Redactor()).shared == 3
    assert len(read_tape(out).exchanges) == 3


def test_lists_that_share_a_beginning_are_told_apart() -> None:
    first = {"role": "system"}
    lists: list[list[Any]] = [[first], [first, 1], [first, 1, 2], [first, 2], [first], [first, 1], [[first, 1]], []]
    made = [replace(BASE, request=replace(BASE.request, body=JsonBody({"m": one}))) for one in lists]
    found = [one.partition("-")[0] for one in identities(Tape(None, header(), tuple(made)))]
    assert [found.index(one) for one in found] == [0, 1, 2, 3, 0, 1, 6, 7]


def test_a_loop_that_resends_its_history_takes_linear_time() -> None:
    def seconds(calls: int) -> float:
        history: list[Any] = [{"role": "user", "content": "x" * 300}]
        made = []
        for number in range(1, calls + 1):
            history = [*history, {"role": "assistant", "content": f"{number}" * 100}]
            made.append(Exchange(number, number, Request("POST", "u", Headers(), JsonBody({"m": history}))))
        started = time.process_time()
        identities(Tape(None, header(), tuple(made)))
        return time.process_time() - started

    assert seconds(2000) < 8 * seconds(500) + 0.02
