"""Numbers and times of imported exchanges: the containers' own, and an order where there are none."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from wiretape.adapters.importers.source import ImportedExchange
from wiretape.adapters.importers.write_imported import place, provenance, write_imported
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.redaction import Redactor

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def one(
    file: str = "a",
    started: float | None = None,
    length: int = 0,
    order: int | None = None,
    name: str = "",
    date: str = "",
) -> ImportedExchange:
    headers = Headers([("date", date)] if date else [])
    exchange = Exchange(
        1, 0, Request("POST", f"https://x.example.com/{name}"), Response(200, headers, length), Ended.COMPLETE, length
    )
    return ImportedExchange(file, "vcrpy", 1, exchange, started, order)


def times(*taken: ImportedExchange) -> list[tuple[int, int | None]]:
    return [(exchange.at, exchange.ended_at) for exchange in place(taken, NOW).exchanges]


def names(*taken: ImportedExchange) -> list[str]:
    return [exchange.request.url.rpartition("/")[2] for exchange in place(taken, NOW).exchanges]


def test_without_times_only_the_order_is_kept() -> None:
    placed = place([one(), one(), one("b", length=250), one("b")], NOW)
    assert placed.started == NOW
    assert [(x.number, x.at, x.ended_at) for x in placed.exchanges] == [
        (1, 0, 0),
        (2, 1, 1),
        (3, 2, 252),
        (4, 253, 253),
    ]
    assert placed.exchanges[2].response is not None
    assert placed.exchanges[2].response.headers_at == 252


def test_a_tape_without_times_began_at_its_first_date() -> None:
    placed = place([one(date="rubbish"), one(date="Tue, 01 Nov 2011 04:58:44 GMT"), one()], NOW)
    assert placed.started == datetime(2011, 11, 1, 4, 58, 44, tzinfo=UTC)


def test_times_of_a_file_are_its_own_and_order_it() -> None:
    """Concurrent exchanges stay so."""
    mixed = [one(started=100.5, length=10, name="second"), one(started=100.0, length=2000, name="first")]
    assert names(*mixed) == ["first", "second"]
    assert times(*mixed) == [(0, 2000), (500, 510)]
    assert place(mixed, NOW).started == datetime.fromtimestamp(100, UTC)


def test_files_stand_in_the_order_in_which_they_are_named() -> None:
    """A file that began before the one named before it had ended comes after it, as a whole."""
    files = [one("a", 100.0, 500), one("b", 40.0, 10), one("b", 41.0, 10), one("c", 200.0)]
    assert times(*files) == [(0, 500), (501, 511), (1501, 1511), (100_000, 100_000)]


def test_a_file_without_times_stands_between_two_that_have_some() -> None:
    assert times(one("a", 100.0, 5), one("b"), one("c", 100.002)) == [(0, 5), (6, 6), (7, 7)]


def test_a_clock_of_whole_seconds_does_not_make_exchanges_concurrent() -> None:
    assert times(one(started=100), one(started=100), one(started=101)) == [(0, 0), (1, 1), (1000, 1000)]


def test_some_entries_without_a_time_stay_where_they_stand() -> None:
    mixed = [one(started=100.0, name="a"), one(name="b"), one(started=99.0, name="c"), one(started=103.0, name="d")]
    assert names(*mixed) == ["a", "b", "c", "d"]
    assert [at for at, _ in times(*mixed)] == sorted(at for at, _ in times(*mixed))


def test_a_container_may_number_its_entries() -> None:
    assert names(one(order=1, name="second"), one(order=0, name="first")) == ["first", "second"]


def test_provenance_names_containers_and_files_and_no_directories() -> None:
    taken = [one("/home/me/a.yaml"), one("/home/me/a.yaml"), one("b.yaml")]
    assert provenance(taken) == "imported from vcrpy: a.yaml, b.yaml"
    assert provenance([one(f"{n}") for n in range(60)]).endswith("49 and 10 more")


def test_a_secret_that_a_later_file_names_is_taken_out_of_an_earlier_one(tmp_path: Path) -> None:
    secret = "Zk3vQ9xT1mB7cW5hL2pR8"
    early = Exchange(1, 0, Request("POST", "https://x.example.com/", body=JsonBody({"note": f"key {secret}"})))
    late = Exchange(1, 0, Request("POST", "https://x.example.com/", Headers([("authorization", f"Bearer {secret}")])))
    out = tmp_path / "t.tape"
    write_imported(
        out,
        [ImportedExchange("a", "vcrpy", 1, early), ImportedExchange("b", "vcrpy", 1, late)],
        NOW,
        Redactor(),
        f"of {secret}",
    )
    assert secret not in out.read_text(encoding="utf-8")
    assert "authorization" in read_tape(out).header.redacted


def test_a_secret_that_only_a_later_body_shows_is_taken_out_of_an_earlier_one(tmp_path: Path) -> None:
    secret = "Zk3vQ9xT1mB7cW5hL2pR8"
    early = Exchange(1, 0, Request("POST", "https://x.example.com/", body=JsonBody({"note": f"key {secret}"})))
    late = Exchange(1, 0, Request("POST", "https://x.example.com/", body=JsonBody({"api_key": secret})))
    out = tmp_path / "t.tape"
    write_imported(
        out, [ImportedExchange("a", "vcrpy", 1, early), ImportedExchange("b", "vcrpy", 1, late)], NOW, Redactor(), None
    )
    assert secret not in out.read_text(encoding="utf-8")
