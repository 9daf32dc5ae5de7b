"""What `--wiretape-mode=update` makes of a tape: how it is put together, and what the end of the run drops of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.replaying import chat, exchange, live, user

from wiretape.adapters.pytest.options import Mode
from wiretape.adapters.pytest.report.updates import TapeUpdate, finish_updates
from wiretape.adapters.settings import Settings
from wiretape.adapters.update.session import UpdateSession
from wiretape.adapters.update.staged_recording import StagedRecording
from wiretape.adapters.update.updated_tape import UpdatedTape, digest
from wiretape.adapters.update.write_updated import TapePlacement
from wiretape.matching.session import ReplaySession
from wiretape.model.http import Exchange, JsonBody
from wiretape.tape.editing.edit import moved
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.writing.writer import write_tape

HEADER = Header(wiretape=VERSION, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape 0")
DAY = 86_400_000
A, B = "test_a.py::test_a", "test_b.py::test_b"


def made(*words: str, first: int = 1, after: int = 0) -> list[Exchange]:
    """One exchange for each word, a second after the other."""
    every = [exchange(number, chat(user(text)), text) for number, text in enumerate(words, first)]
    return [moved(one, after + one.number * 1000 - one.at) for one in every]


def asked(exchanges: Sequence[Exchange]) -> list[str]:
    bodies = [one.request.body for one in exchanges]
    return [body.value["messages"][0]["content"] for body in bodies if isinstance(body, JsonBody)]


def ran(old: Tape, *words: str) -> UpdatedTape:
    """A test that has asked for these, a day after the old tape: what that does not answer is recorded behind it."""
    update_session = UpdateSession(ReplaySession([old]))
    fresh: list[Exchange] = []
    for text in words:
        if update_session.answer(live(chat(user(text)))) is None:
            number = len(old.exchanges) + len(fresh) + 1
            fresh += made(text, first=number, after=DAY)
            update_session.note_live_call(number)
    return UpdatedTape.of(old, update_session, Tape(None, HEADER, (*old.exchanges, *fresh)))


def keep(updated_tape: UpdatedTape, tape: Path, mode: Mode, alone: bool = False) -> list[str]:
    drop = alone and mode is Mode.UPDATE
    TapePlacement(tape, None).update(
        StagedRecording(tape, goes_on=True), updated_tape, drop=drop, append=mode is Mode.NEW
    )
    return asked(read_tape(tape).exchanges)


def told(updated_tape: UpdatedTape, tape: Path, users: Sequence[str] = (A, B), partial: str = "") -> TapeUpdate:
    left = dict(Counter(map(digest, updated_tape.left)))
    fresh = len(updated_tape.fresh)
    return TapeUpdate(
        tape=str(tape), users=list(users), partial=partial, fresh=fresh, kept=0, dropped=[], why=[], left=left
    )


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "shared.tape"
    write_tape(path, HEADER, made("one", "two", "three"))
    return path


@pytest.mark.parametrize(
    ("mode", "alone", "expected"),
    [
        (Mode.NEW, True, ["one", "two", "three", "twice"]),
        (Mode.UPDATE, True, ["one", "twice", "three"]),
        (Mode.UPDATE, False, ["one", "twice", "two", "three"]),
    ],
)
def test_where_a_live_call_stands_and_what_goes(tape: Path, mode: Mode, alone: bool, expected: list[str]) -> None:
    updated_tape = ran(read_tape(tape), "one", "twice", "three")
    assert asked(updated_tape.exchanges) == ["one", "twice", "three"]
    assert keep(updated_tape, tape, mode, alone) == expected
    assert [one.number for one in read_tape(tape).exchanges] == list(range(1, len(expected) + 1))


def test_a_live_call_before_the_first_kept_one_stands_beside_it_on_a_shared_tape(tape: Path) -> None:
    assert keep(ran(read_tape(tape), "news", "three"), tape, Mode.UPDATE) == ["one", "two", "news", "three"]
    assert keep(ran(read_tape(tape), "last"), tape, Mode.UPDATE)[-2:] == ["three", "last"]


def test_the_day_between_two_recordings_is_left_out(tape: Path) -> None:
    before = read_tape(tape).exchanges
    keep(ran(read_tape(tape), "one", "two", "three", "four", "five"), tape, Mode.NEW)
    after = read_tape(tape)
    assert after.header.started == HEADER.started
    ended = before[-1].ended_at
    assert ended is not None
    assert [one.at for one in after.exchanges] == [1000, 2000, 3000, ended, ended + 1000]


def test_a_tape_of_which_nothing_is_kept_begins_when_it_was_recorded(tape: Path) -> None:
    assert keep(ran(read_tape(tape), "hi", "ho"), tape, Mode.UPDATE, alone=True) == ["hi", "ho"]
    after = read_tape(tape)
    assert after.header.started == datetime(2026, 1, 2, 0, 0, 4, tzinfo=UTC)
    assert [(one.number, one.at) for one in after.exchanges] == [(1, 0), (2, 1000)]


def test_what_another_worker_has_put_on_the_tape_meanwhile_stays_and_is_there_once(tape: Path) -> None:
    old = read_tape(tape)
    keepings = [(TapePlacement(tape, tape.with_name(".turns")), StagedRecording(tape, goes_on=True)) for _ in range(2)]
    (first, ours), (second, theirs) = keepings
    assert asked(first.update(ours, ran(old, "one", "plan", "mine"), drop=True, append=False).left) == ["two", "three"]
    put = second.update(theirs, ran(old, "plan", "yours"), drop=True, append=False)
    assert (asked(put.fresh), put.left) == (["yours"], [])
    assert asked(read_tape(tape).exchanges) == ["one", "plan", "mine", "yours"]


def test_what_no_test_of_a_shared_tape_asked_for_is_dropped_at_the_end(tape: Path) -> None:
    first = ran(read_tape(tape), "one")
    second = ran(read_tape(tape), "twice")
    keep(second, tape, Mode.UPDATE)
    lines = finish_updates({A: told(first, tape), B: told(second, tape)}, Settings())
    assert asked(read_tape(tape).exchanges) == ["one", "twice"]
    assert lines == ["updated shared.tape: 1 exchange called live, 1 kept, 2 dropped"]


def test_what_a_later_test_saw_of_an_earlier_one_is_not_taken_for_old(tape: Path) -> None:
    first = ran(read_tape(tape), "news")
    keep(first, tape, Mode.UPDATE)
    second = ran(read_tape(tape), "one", "two", "three")
    assert asked(second.left) == ["news"]
    assert finish_updates({A: told(first, tape), B: told(second, tape)}, Settings()) == [
        "updated shared.tape: 1 exchange called live, 3 kept, 0 dropped"
    ]
    assert len(read_tape(tape).exchanges) == 4


@pytest.mark.parametrize(
    ("users", "partial", "why"),
    [
        ((A, B), "", "other tests that use the tape have not passed in this run: test_b.py::test_b"),
        (
            (A,),
            "some tests are deselected",
            "some tests are deselected, and others may use this tape: a run of the whole suite drops them",
        ),
    ],
)
def test_nothing_is_dropped_that_others_may_ask_for(tape: Path, users: Sequence[str], partial: str, why: str) -> None:
    one = told(ran(read_tape(tape), "one"), tape, users, partial)
    assert finish_updates({A: one}, Settings()) == [
        "shared.tape: 2 exchanges that these tests did not request stay",
        f"  {why}",
    ]
    assert asked(read_tape(tape).exchanges) == ["one", "two", "three"]


def test_what_is_the_same_of_several_tests_is_told_once(tape: Path) -> None:
    tests = {name: {**told(ran(read_tape(tape), "hi"), tape), "why": ["it differs"]} for name in (A, B)}
    keep(ran(read_tape(tape), "hi", "ho"), tape, Mode.UPDATE)
    assert finish_updates(tests, Settings()) == [  # type: ignore[arg-type]
        "updated shared.tape: 2 exchanges called live, 0 kept, 3 dropped",
        "  it differs (2 times)",
    ]


def test_of_equal_calls_as_many_stay_as_one_test_asked_for(tape: Path) -> None:
    twice = made("one", "one", "one")
    write_tape(tape, HEADER, twice)
    first, second = ran(read_tape(tape), "one", "one"), ran(read_tape(tape), "one")
    assert finish_updates({A: told(first, tape), B: told(second, tape)}, Settings()) == [
        "updated shared.tape: 0 exchanges called live, 2 kept, 1 dropped"
    ]
    assert asked(read_tape(tape).exchanges) == ["one", "one"]


def test_a_shared_tape_is_not_emptied_by_tests_that_ask_for_nothing(tape: Path) -> None:
    finish_updates({A: told(ran(read_tape(tape)), tape), B: told(ran(read_tape(tape)), tape)}, Settings())
    assert len(read_tape(tape).exchanges) == 3


def test_a_shared_tape_that_is_gone_by_the_end_of_the_run_is_told(tape: Path) -> None:
    one, two = told(ran(read_tape(tape), "one", "news"), tape), told(ran(read_tape(tape), "two"), tape)
    tape.unlink()
    lines = finish_updates({A: one, B: two}, Settings())
    assert lines[0] == "updated shared.tape: 1 exchange called live, 0 kept, 0 dropped"
    assert lines[1] == "shared.tape: 1 exchange that these tests did not request stays"
    assert lines[2].endswith("shared.tape: no such file")
