from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.taping import STARTED, Taping

from wiretape.model.http import Ended, Exchange, Request, Response
from wiretape.tape.editing.splice import Entry, Fresh, Kept, spliced, write_spliced
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.redaction import Redactor


def exchange(number: int, at: int, end: int, name: str = "old") -> Exchange:
    return Exchange(number, at, Request("POST", f"https://{name}/"), Response(200), Ended.COMPLETE, end)


OLD = [exchange(1, 0, 10), exchange(2, 20, 30), exchange(3, 40, 50), exchange(4, 60, 70)]


def shown(order: list[Entry]) -> list[tuple[int, str, int, int | None]]:
    return [(x.number, x.request.url[8:-1], x.at, x.ended_at) for x in spliced(OLD, order)]


def fresh(at: int, end: int, number: int = 1) -> Fresh:
    return Fresh(exchange(number, at, end, "new"))


def test_a_fresh_exchange_takes_the_place_of_the_one_that_nobody_asked_for() -> None:
    assert shown([Kept(1), fresh(900, 909), Kept(3), Kept(4)]) == [
        (1, "old", 0, 10),
        (2, "new", 20, 29),
        (3, "old", 40, 50),
        (4, "old", 60, 70),
    ]


def test_what_is_kept_is_the_very_same_object() -> None:
    made = spliced(OLD, [Kept(1), fresh(900, 905), Kept(3), Kept(4)])
    assert [made[0], made[2], made[3]] == [OLD[0], OLD[2], OLD[3]]
    assert made[0] is OLD[0]


def test_a_slower_answer_moves_what_followed_it_no_further_than_needed() -> None:
    assert shown([Kept(1), fresh(900, 935), Kept(3), Kept(4)]) == [
        (1, "old", 0, 10),
        (2, "new", 20, 55),
        (3, "old", 55, 65),
        (4, "old", 75, 85),
    ]


def test_what_did_not_wait_for_the_replaced_one_does_not_wait_for_the_fresh_one() -> None:
    old = [exchange(1, 0, 100), exchange(2, 20, 30)]
    made = spliced(old, [fresh(900, 1900), Kept(2)])
    assert [(x.number, x.at, x.ended_at) for x in made] == [(1, 0, 1000), (2, 20, 30)]


def test_more_fresh_ones_than_places_move_the_numbers_behind_them() -> None:
    assert shown([Kept(1), fresh(900, 905), fresh(910, 915, 2), Kept(3)]) == [
        (1, "old", 0, 10),
        (2, "new", 20, 25),
        (3, "new", 30, 35),
        (4, "old", 40, 50),
    ]


def test_fresh_ones_at_the_end_and_at_the_start() -> None:
    assert shown([fresh(5, 6), *[Kept(n) for n in (1, 2, 3, 4)], fresh(900, 905)])[0] == (1, "new", 0, 1)
    assert [row[0] for row in shown([fresh(5, 6), *[Kept(n) for n in (1, 2, 3, 4)], fresh(900, 905)])] == [
        *(1, 2, 3, 4, 5, 6)
    ]
    assert shown([Kept(1), Kept(2), Kept(3), Kept(4), fresh(900, 905)])[-1] == (5, "new", 70, 75)


def test_calls_at_the_same_time_stay_that() -> None:
    made = spliced(OLD[:1], [Kept(1), fresh(900, 950, 1), fresh(910, 940, 2)])
    assert [(x.number, x.at, x.ended_at) for x in made] == [(1, 0, 10), (2, 10, 60), (3, 20, 50)]


def test_agents_that_came_in_another_order_keep_their_places() -> None:
    assert [row[:2] for row in shown([Kept(3), Kept(1), fresh(900, 905), Kept(2)])] == [
        *((1, "old"), (2, "old"), (3, "old"), (4, "new"))
    ]


def test_where_nothing_is_kept_the_recording_is_the_tape() -> None:
    made = spliced(OLD, [fresh(7, 9), fresh(8, 12, 2)])
    assert [(x.number, x.at) for x in made] == [(1, 7), (2, 8)]


def history(steps: int, last: str = "") -> bytes:
    messages = [f'{{"role":"user","content":"{"step " * 40}{number}"}}' for number in range(steps)]
    return f'{{"messages":[{",".join([*messages, last] if last else messages)}]}}'.encode()


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    taping = Taping(tmp_path / "a.tape")
    for steps in range(1, 6):
        taping.call(history(steps), [b'{"answer":', str(steps).encode(), b"}"], request_headers=[("user-agent", "a/1")])
        taping.clock.tick(10)
    taping.recorder.close()
    return tmp_path / "a.tape"


def documents(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n\n")


def test_what_is_kept_stands_on_the_tape_byte_for_byte(recorded: Path) -> None:
    before = documents(recorded)
    old = read_tape(recorded)
    taping = Taping(recorded.with_name("fresh.tape"))
    taping.call(
        history(4, '{"role":"user","content":"new"}'), [b'{"answer":9}'], request_headers=[("user-agent", "a/2")]
    )
    taping.recorder.close()
    live = read_tape(recorded.with_name("fresh.tape"))
    order: list[Entry] = [Kept(1), Kept(2), Kept(3), Kept(4), Fresh(live.exchanges[0])]
    write_spliced(old, live.header, order, recorded, Redactor())
    after = documents(recorded)
    assert after[1:9] == before[1:9]
    new = read_tape(recorded)
    assert new.exchanges[:4] == old.exchanges[:4]
    assert new.exchanges[4].request.body == live.exchanges[0].request.body
    assert new.header.client == {"user-agent": ["a/1", "a/2"]}
    assert new.warnings == ()


def test_what_was_built_on_a_dropped_body_is_built_anew(recorded: Path) -> None:
    old = read_tape(recorded)
    order: list[Entry] = [Kept(number) for number in (2, 3, 5)]
    write_spliced(old, old.header, order, recorded, Redactor())
    new = read_tape(recorded)
    assert [x.request.body for x in new.exchanges] == [old.exchanges[n].request.body for n in (1, 2, 4)]
    assert new.warnings == ()


def test_the_day_of_the_tape_stays_where_something_of_it_was_kept(tmp_path: Path, recorded: Path) -> None:
    old = read_tape(recorded)
    later = Header(started=STARTED + timedelta(days=90), recorder="wiretape 9", note="anew", bypassed=["b"])
    write_spliced(old, later, [Kept(1), Fresh(exchange(1, 5, 6))], tmp_path / "b.tape", Redactor())
    header = read_tape(tmp_path / "b.tape").header
    assert (header.started, header.note, header.recorder, header.bypassed) == (STARTED, "anew", "wiretape 9", ["b"])
    write_spliced(old, later, [Fresh(exchange(1, 5, 6))], tmp_path / "b.tape", Redactor())
    assert read_tape(tmp_path / "b.tape").header.started == datetime(2026, 5, 30, 12, tzinfo=UTC)
