"""`@wiretape.tool`: recorded where calls are recorded, answered where they are answered, else the function it was."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import wiretape
from wiretape.model.http import Ended
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.mcp.traffic import served_tool_calls


class NoSuchCity(Exception):
    """Of the program's own."""


class Picky(Exception):
    """Its arguments are not those of its instances."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


@dataclass
class Weather:
    city: str
    degrees: int


class Plan(BaseModel):
    day: date


ran: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@wiretape.tool
def weather(city: str, unit: str = "C") -> dict[str, Any]:
    ran.append(city)
    if city == "Atlantis":
        raise NoSuchCity("no city of that name", 404)
    return {"city": city, "degrees": len(city), "unit": unit}


@wiretape.tool("look_up")
async def search(query: str) -> list[str]:
    ran.append(query)
    await asyncio.sleep(0)
    return [query.upper()]


class Desk:
    def __init__(self) -> None:
        self.booked = 0

    @wiretape.tool
    def book(self, seat: int) -> int:
        self.booked += 1
        return seat * 10

    @wiretape.tool
    @staticmethod
    def price(seat: int) -> float:
        ran.append(seat)
        return seat / 4

    @classmethod
    @wiretape.tool
    def named(cls, seat: int) -> str:
        return f"{cls.__name__} {seat}"


def test_outside_of_any_context_it_is_the_function_that_it_was() -> None:
    assert weather("Bern") == {"city": "Bern", "degrees": 4, "unit": "C"}
    assert asyncio.run(search("x")) == ["X"]
    assert ran == ["Bern", "x"]
    assert weather.__name__ == "weather"
    assert asyncio.iscoroutinefunction(search)


def test_what_was_recorded_is_answered_and_the_tool_does_not_run(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    desk = Desk()

    def run() -> list[Any]:
        return [
            weather("Bern"),
            weather(unit="F", city="Rome"),
            asyncio.run(search("x")),
            desk.book(3),
            Desk.price(3),
            Desk.named(4),
        ]

    with wiretape.record(tape):
        recorded = run()
    assert desk.booked == 1
    ran.clear()
    with wiretape.replay(tape) as replayed:
        assert run() == recorded
    assert (ran, desk.booked) == ([], 1)
    assert [played.tier for played in replayed.report.played] == ["exact"] * 6
    assert replayed.report.left_over == ()


def test_arguments_decide_and_not_the_order(tmp_path: Path) -> None:
    with wiretape.record(tmp_path / "x.tape"):
        recorded = {city: weather(city) for city in ("Bern", "Rome", "Oslo")}
    with wiretape.replay(tmp_path / "x.tape"):
        assert {city: weather(city) for city in ("Oslo", "Bern", "Rome")} == recorded


def test_equal_calls_get_their_results_in_the_recorded_order(tmp_path: Path) -> None:
    count = iter(range(10))

    @wiretape.tool
    def ticket() -> int:
        return next(count)

    with wiretape.record(tmp_path / "x.tape"):
        assert [ticket(), ticket(), ticket()] == [0, 1, 2]
    with wiretape.replay(tmp_path / "x.tape"):
        assert [ticket(), ticket(), ticket()] == [0, 1, 2]


def test_threads_that_ask_at_once_get_each_result_once(tmp_path: Path) -> None:
    count = iter(range(50))
    lock = threading.Lock()

    @wiretape.tool
    def ticket() -> int:
        with lock:
            return next(count)

    with wiretape.record(tmp_path / "x.tape"), ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ticket(), range(50)))
    with wiretape.replay(tmp_path / "x.tape"), ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(lambda _: ticket(), range(50))) == list(range(50))


def test_tasks_that_run_at_once_are_answered_by_arguments(tmp_path: Path) -> None:
    async def run(queries: list[str]) -> dict[str, list[str]]:
        return dict(zip(queries, await asyncio.gather(*map(search, queries)), strict=True))

    with wiretape.record(tmp_path / "x.tape"):
        recorded = asyncio.run(run(["a", "b", "c"]))
    with wiretape.replay(tmp_path / "x.tape"):
        assert asyncio.run(run(["c", "a", "b"])) == recorded


def test_arguments_that_differ_only_in_a_date_still_answer_and_are_told_as_drift(tmp_path: Path) -> None:
    @wiretape.tool
    def log(text: str) -> str:
        return "done"

    with wiretape.record(tmp_path / "x.tape"):
        log("seen on 2026-02-28")
    with wiretape.replay(tmp_path / "x.tape") as replayed:
        assert log("seen on 2026-03-01") == "done"
    (drift,) = replayed.report.drifted
    assert (drift.where, drift.tier) == ("arguments.text", "masked")


def test_an_error_is_raised_again(tmp_path: Path) -> None:
    @wiretape.tool
    def pick(number: int) -> int:
        raise Picky(number, "no")

    with wiretape.record(tmp_path / "x.tape"):
        with pytest.raises(NoSuchCity):
            weather("Atlantis")
        with pytest.raises(Picky):
            pick(1)
    ran.clear()
    with wiretape.replay(tmp_path / "x.tape"):
        with pytest.raises(NoSuchCity) as told:
            weather("Atlantis")
        with pytest.raises(wiretape.ToolError, match="Picky: 1: no"):  # it cannot be made from what it says
            pick(1)
    assert told.value.args == ("no city of that name", 404)
    assert ran == []


def test_a_call_that_was_never_recorded_is_a_miss_that_names_the_difference(tmp_path: Path) -> None:
    with wiretape.record(tmp_path / "x.tape"):
        weather("Bern")
    replayed = wiretape.replay(tmp_path / "x.tape")
    with pytest.raises(wiretape.MissError) as closing, replayed, pytest.raises(wiretape.MissError) as told:
        weather("Berlin")
    message = str(told.value)
    assert 'x.tape answers the tool weather({"city":"Berlin"})' in message
    assert "it diverges from x1 at arguments.city" in message
    assert "recorded  Bern" in message
    assert "live      Berlin" in message
    assert "force=True" in message
    assert str(closing.value) == message  # an agent that swallows the error cannot hide it
    (missed,) = replayed.report.missed
    assert (missed.what, missed.reason) == ("tool weather", "diverged")
    assert ran == ["Bern"]


def test_a_tool_that_the_tape_does_not_know_is_a_miss_that_names_those_it_knows(tmp_path: Path) -> None:
    with wiretape.record(tmp_path / "x.tape"):
        weather("Bern")
    replayed = wiretape.replay(tmp_path / "x.tape")
    with pytest.raises(wiretape.MissError, match="no call of look_up; its tools are weather"), replayed:
        asyncio.run(search("x"))


def test_a_result_is_given_once_unless_repeat_is_asked_for(tmp_path: Path) -> None:
    with wiretape.record(tmp_path / "x.tape"):
        recorded = weather("Bern")
    replayed = wiretape.replay(tmp_path / "x.tape")
    with pytest.raises(wiretape.MissError, match="x1 would, but it was already played"), replayed:
        assert [weather("Bern"), weather("Bern")]
    with wiretape.replay(tmp_path / "x.tape", repeat=True):
        assert [weather("Bern"), weather("Bern")] == [recorded, recorded]


def test_a_miss_may_be_raised_past_everything(tmp_path: Path) -> None:
    with wiretape.record(tmp_path / "x.tape"):
        weather("Bern")

    def agent() -> None:
        try:
            weather("Rome")
        except Exception:
            pytest.fail("an agent's `except Exception` must not see it")

    with pytest.raises(wiretape.MissInterrupt), wiretape.replay(tmp_path / "x.tape", on_miss="raise"):
        agent()


def test_values_come_back_in_their_own_types(tmp_path: Path) -> None:
    @wiretape.tool
    def measure(city: str) -> Any:
        return Weather(city, 7)

    @wiretape.tool
    def plan() -> Plan:
        return Plan(day=date(2026, 3, 1))

    @wiretape.tool
    def pair() -> tuple[int, ...]:
        return (1, 2)

    @wiretape.tool
    def today() -> date:
        return date(2026, 3, 1)

    def run() -> list[Any]:
        return [measure("Bern"), plan(), pair(), today()]

    with wiretape.record(tmp_path / "x.tape"):
        recorded = run()
    with wiretape.replay(tmp_path / "x.tape"):
        assert run() == recorded


def test_what_json_cannot_carry_never_harms_the_tool_and_says_so_in_a_replay(tmp_path: Path) -> None:
    class Handle:
        pass

    handle = Handle()

    @wiretape.tool
    def opened(where: Any) -> Any:
        return handle

    with wiretape.record(tmp_path / "x.tape"):
        assert opened(handle) is handle
    with wiretape.replay(tmp_path / "x.tape"), pytest.raises(wiretape.ToolError, match="could not be recorded as JSON"):
        opened(Handle())


def test_parameters_that_are_no_part_of_the_call_are_left_out(tmp_path: Path) -> None:
    @wiretape.tool(ignore=["session"])
    def asked(session: object, question: str) -> str:
        return question.upper()

    with wiretape.record(tmp_path / "x.tape"):
        asked(object(), "why")
    with wiretape.replay(tmp_path / "x.tape"):
        assert asked(object(), "why") == "WHY"
    (served,) = served_tool_calls(read_tape(tmp_path / "x.tape").exchanges)
    assert (served.name, served.arguments, served.text) == ("asked", {"question": "why"}, "WHY")


def test_a_tool_that_was_cancelled_has_no_answer(tmp_path: Path) -> None:
    @wiretape.tool
    async def forever() -> None:
        await asyncio.sleep(3600)

    async def run() -> None:
        task = asyncio.ensure_future(forever())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with wiretape.record(tmp_path / "x.tape"):
        asyncio.run(run())
    (exchange,) = read_tape(tmp_path / "x.tape").exchanges
    assert exchange.ended is Ended.CLIENT_CLOSED


def test_a_recording_of_a_replay_holds_the_tools_too(tmp_path: Path) -> None:
    first, second = tmp_path / "1.tape", tmp_path / "2.tape"
    with wiretape.record(first):
        recorded = weather("Bern")
    with wiretape.replay(first), wiretape.record(second):
        assert weather("Bern") == recorded
    assert ran == ["Bern"]
    assert served_of(first) == served_of(second)


def served_of(tape: Path) -> list[tuple[str, Any, str | None]]:
    return [(one.name, one.arguments, one.text) for one in served_tool_calls(read_tape(tape).exchanges)]


def test_tools_that_a_program_runs_itself_are_not_left_over(tmp_path: Path) -> None:
    with wiretape.record(tmp_path / "x.tape"):
        weather("Bern")
    with wiretape.replay(tmp_path / "x.tape") as replayed:
        pass
    assert replayed.report.left_over == ()


def test_stubs_answer_by_arguments_in_a_replay_and_from_a_tape_on_disk(tmp_path: Path) -> None:
    with wiretape.record(tmp_path / "x.tape"):
        bern, rome = weather("Bern"), weather("Rome")
    with wiretape.replay(tmp_path / "x.tape") as tape:
        stub = tape.tool("weather")
        assert [stub(city="Rome"), stub({"city": "Bern"})] == [rome, bern]
    stub = wiretape.read_tape(tmp_path / "x.tape").tool("weather")
    assert stub(city="Rome") == rome
    with pytest.raises(
        wiretape.MissError, match="it was already played\n  each recorded result is played once: another stub"
    ):
        stub(city="Rome")
    later = wiretape.read_tape(tmp_path / "x.tape").tool("weather", is_async=True)
    assert asyncio.run(later(city="Bern")) == bern


def test_a_generator_is_refused_by_name() -> None:
    with pytest.raises(wiretape.WiretapeError, match="drip is a generator"):

        @wiretape.tool
        def drip() -> Any:
            yield 1


def test_a_wrong_call_is_the_functions_own_error(tmp_path: Path) -> None:
    with wiretape.record(tmp_path / "x.tape"), pytest.raises(TypeError, match="colour"):
        weather("Bern", colour="red")  # type: ignore[call-arg]


def test_whatever_a_tool_gets_and_gives_it_runs_as_ever(tmp_path: Path) -> None:
    class Odd(BaseModel):
        def __iter__(self) -> Any:
            raise RuntimeError("odd")

        @property
        def model_fields_set(self) -> Any:
            raise RuntimeError("odd")

    own: list[Any] = []
    own.append(own)
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    values: list[Any] = [own, deep, Odd(), float("nan"), 2**80, "\ud800", {1: 2}, b"\xff", {"a": {1, 2}}, ...]

    @wiretape.tool
    def echo(value: Any) -> Any:
        return value

    with wiretape.record(tmp_path / "x.tape") as recording:
        for value in values:
            assert echo(value) is value
    assert recording.summary is not None
    assert len(read_tape(tmp_path / "x.tape").exchanges) >= len(values) - 1


def test_the_strictest_tier_takes_nothing_for_equal_that_is_not(tmp_path: Path) -> None:
    @wiretape.tool
    def log(text: str) -> str:
        return "done"

    with wiretape.record(tmp_path / "x.tape"):
        log("seen on 2026-02-28")
    replayed = wiretape.replay(tmp_path / "x.tape", tier="normalized")
    with pytest.raises(wiretape.MissError, match=r"arguments\.text"), replayed:
        log("seen on 2026-03-01")


def test_arguments_are_compared_as_json(tmp_path: Path) -> None:
    @wiretape.tool
    def order(items: list[dict[str, Any]], note: str = "") -> int:
        return len(items)

    with wiretape.record(tmp_path / "x.tape"):
        order([{"name": "tea", "count": 1}], note='{"a": 1, "b": 2}')
    with wiretape.replay(tmp_path / "x.tape") as replayed:
        assert order(note='{"b":2,"a":1}', items=[{"count": 1.0, "name": "tea"}]) == 1
    assert [played.tier for played in replayed.report.played] == ["normalized"]
