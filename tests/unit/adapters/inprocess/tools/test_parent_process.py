"""A wrapped tool in a child process: recorded by who records its program, answered by who replays it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.taping import Taping

import wiretape
from wiretape.adapters.mitm.tool_port import ToolPort, ToolReports
from wiretape.adapters.replay_runner import ReplayServer
from wiretape.adapters.routing.tool_route import PATH, VARIABLE
from wiretape.adapters.update.session import UpdateSession
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import ReplayOptions
from wiretape.model.http import Ended
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.wire.mcp.tool_exchange import tool_answer_of, tool_call_of

ran: list[Any] = []


@dataclass
class Hit:
    title: str
    score: float


@wiretape.tool
def weather(city: str) -> dict[str, Any]:
    ran.append(city)
    if city == "Atlantis":
        raise LookupError("no city of that name", 404)
    return {"city": city, "degrees": len(city)}


@wiretape.tool("look_up")
async def search(query: str) -> list[Hit]:
    ran.append(query)
    await asyncio.sleep(0)
    return [Hit(query, 0.5)]


@wiretape.tool
async def endless() -> None:
    await asyncio.Event().wait()


@wiretape.tool
def handle(x: int) -> object:
    return object()


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@contextmanager
def heard(reports: ToolReports) -> Iterator[int]:
    """The port of a recorder, on a loop of its own."""
    loop, port = asyncio.new_event_loop(), ToolPort(reports)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        serving = asyncio.run_coroutine_threadsafe(port.serve(), loop)
        yield port.port
    finally:
        loop.call_soon_threadsafe(port.close)
        serving.result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def safely(function: Callable[..., Any], *values: Any) -> Any:
    return function(*values)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "t.tape"


@contextmanager
def recorded(
    tape: Path, monkeypatch: pytest.MonkeyPatch, update_session: UpdateSession | None = None
) -> Iterator[Taping]:
    """As in a child of `wiretape record`; with `update_session`, of `record --update`."""
    taping = Taping(tape)
    reports = ToolReports(taping.recorder, safely)
    if update_session is not None:
        reports.from_tape, reports.on_call = update_session.tool, update_session.note_live_call
    with heard(reports) as port:
        monkeypatch.setenv(VARIABLE, f"record+http://127.0.0.1:{port}{PATH}")
        yield taping
        monkeypatch.delenv(VARIABLE)
    taping.recorder.close()


@contextmanager
def replayed(tape: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplaySession]:
    """As in a child of `wiretape replay`."""
    session = ReplaySession([read_tape(tape)], ReplayOptions(program="python agent.py"))
    with ReplayServer(session) as replaying:
        monkeypatch.setenv(VARIABLE, f"replay+http://127.0.0.1:{replaying.port}{PATH}")
        yield session
        monkeypatch.delenv(VARIABLE)


def calls(tape: Tape) -> list[tuple[str, Any, Any]]:
    return [
        (*tool_call_of(one), made.value if (made := tool_answer_of(one)) is not None else None)
        for one in tape.exchanges
    ]


def test_what_a_child_gets_and_gives_is_recorded_in_order_and_answered_without_running(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded(tape, monkeypatch):
        assert weather("Bern") == {"city": "Bern", "degrees": 4}
        assert asyncio.run(search("a")) == [Hit("a", 0.5)]
        assert weather(city="Rome") == {"city": "Rome", "degrees": 4}
    made = read_tape(tape)
    assert calls(made) == [
        ("weather", {"city": "Bern"}, {"city": "Bern", "degrees": 4}),
        ("look_up", {"query": "a"}, [{"title": "a", "score": 0.5}]),
        ("weather", {"city": "Rome"}, {"city": "Rome", "degrees": 4}),
    ]
    assert [one.request.url for one in made.exchanges][1] == "tool://local/look_up"
    assert made.exchanges[0].request.http is None
    ran.clear()
    with replayed(tape, monkeypatch) as session:
        assert weather("Rome") == {"city": "Rome", "degrees": 4}
        assert asyncio.run(search("a")) == [Hit("a", 0.5)]
        assert [str(one) for one in session.report().left_over] == ["x1"]
    assert ran == []


def test_what_a_tool_raised_is_raised_again_and_what_json_cannot_carry_is_said(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded(tape, monkeypatch):
        with pytest.raises(LookupError):
            weather("Atlantis")
        assert type(handle(1)) is object
    with replayed(tape, monkeypatch):
        with pytest.raises(LookupError) as raised:
            weather("Atlantis")
        assert raised.value.args == ("no city of that name", 404)
        with pytest.raises(wiretape.ToolError, match="could not be recorded as JSON"):
            handle(1)


def test_a_call_that_was_cancelled_has_no_answer(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(endless())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with recorded(tape, monkeypatch):
        asyncio.run(cancelled())
    (one,) = read_tape(tape).exchanges
    assert (one.response, one.ended) == (None, Ended.CLIENT_CLOSED)
    with (
        replayed(tape, monkeypatch),
        pytest.raises(wiretape.MissError, match="x1 is a call of it, which ended without"),
    ):
        asyncio.run(endless())


def test_threads_ask_at_the_same_time(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cities = ["x" * n for n in range(1, 20)]
    with recorded(tape, monkeypatch), ThreadPoolExecutor(6) as pool:
        assert [given["degrees"] for given in pool.map(weather, cities)] == list(range(1, 20))
    with replayed(tape, monkeypatch), ThreadPoolExecutor(6) as pool:
        assert [given["degrees"] for given in pool.map(weather, reversed(cities))] == list(range(19, 0, -1))
    assert sorted(len(city) for city in ran) == list(range(1, 20))


def test_a_call_that_was_never_recorded_is_a_miss_for_the_child_and_for_the_replay(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded(tape, monkeypatch):
        weather("Bern")
    with replayed(tape, monkeypatch) as session:
        with pytest.raises(wiretape.MissError) as missed:
            weather("Oslo")
        assert session.report().missed
    assert str(missed.value) == "\n".join(
        [
            f'no call on {tape} answers the tool weather({{"city":"Oslo"}})',
            "  it diverges from x1 at arguments.city",
            "    recorded  Bern",
            "    live      Oslo",
            f"  if the change is intended: wiretape record --update {tape} -- python agent.py",
        ]
    )
    assert ran == ["Bern"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_recorder_that_is_gone_harms_nothing_and_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, f"record+http://127.0.0.1:{free_port()}{PATH}")
    assert weather("Bern")["degrees"] == 4
    assert weather("Rome")["degrees"] == 4
    assert capsys.readouterr().err.count("a call of the tool weather was not recorded: ConnectionRefusedError") == 1


def test_a_replay_that_is_gone_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv(VARIABLE, f"replay+http://127.0.0.1:{port}{PATH}")
    with pytest.raises(wiretape.MissError, match=f"was not run: wiretape replay at 127.0.0.1:{port} did not answer"):
        weather("Bern")
    assert ran == []


@pytest.mark.parametrize(
    "value", ["http://elsewhere", "record+http://127.0.0.1:99999/tool:local/", "record+http://[::1/tool:local/"]
)
def test_an_invalid_variable_is_reported(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert weather("Bern")["degrees"] == 4
    assert weather("Bern")["degrees"] == 4
    assert capsys.readouterr().err == f"wiretape: {VARIABLE} is not valid: {value}\n"


def test_no_tool_runs_in_a_replay_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "replay+http://127.0.0.1/")
    with pytest.raises(wiretape.MissError, match=f"{VARIABLE} is not valid"):
        weather("Bern")
    assert ran == []


def test_a_context_inside_answers_whatever_is_wrong_outside(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(tape, monkeypatch):
        weather("Bern")
    ran.clear()
    monkeypatch.setenv(VARIABLE, "replay+http://127.0.0.1/")
    with wiretape.replay(tape):
        assert weather("Bern")["degrees"] == 4
    with wiretape.record(tape.with_name("other.tape")), pytest.raises(wiretape.MissError, match="is not valid"):
        weather("Bern")  # nobody answers: it would run in a replay
    assert ran == []


def test_a_context_in_the_child_goes_first_and_a_recording_around_it_hears_what_runs(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner.tape"
    with recorded(tape, monkeypatch):
        with wiretape.record(inner):
            weather("Bern")
        with wiretape.replay(inner):
            weather("Bern")
    assert ran == ["Bern"]
    assert calls(read_tape(tape)) == calls(read_tape(inner)) == [("weather", {"city": "Bern"}, weather("Bern"))]


def test_a_recording_in_a_replayed_child_keeps_what_the_replay_answers(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded(tape, monkeypatch):
        weather("Bern")
    with replayed(tape, monkeypatch), wiretape.record(tmp_path / "inner.tape"):
        weather("Bern")
    assert ran == ["Bern"]
    assert calls(read_tape(tmp_path / "inner.tape")) == calls(read_tape(tape))


def test_an_update_runs_only_what_the_tape_no_longer_answers(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(tape, monkeypatch):
        weather("Bern")
        weather("Rome")
    ran.clear()
    update_session = UpdateSession(ReplaySession([read_tape(tape)]))
    with recorded(tape.with_name("fresh.tape"), monkeypatch, update_session):
        assert weather("Rome")["degrees"] == 4
        assert weather("Oslo!")["degrees"] == 5
    assert ran == ["Oslo!"]
    assert update_session.kept == [2]
    assert [miss.reason for miss in update_session.session.misses] == ["diverged"]
    fresh = {one.number: one for one in read_tape(tape.with_name("fresh.tape")).exchanges}
    assert [type(entry).__name__ for entry in update_session.order(fresh)] == ["Kept", "Fresh"]


def test_what_a_kept_tool_asked_of_models_stays_with_it(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @wiretape.tool
    def subagent() -> str:
        recorder = taping.recorder
        number = recorder.begin("POST", "https://api.openai.com/v1/chat/completions", "1.1", [])
        recorder.request_end(number)
        taping.clock.tick(5)
        recorder.end(number, Ended.UPSTREAM_CLOSED)
        return "done"

    with recorded(tape, monkeypatch) as taping:
        subagent()
        weather("Bern")
    update_session = UpdateSession(ReplaySession([read_tape(tape)]))
    with recorded(tape.with_name("fresh.tape"), monkeypatch, update_session):
        assert subagent() == "done"
    assert (update_session.kept, update_session.within_kept) == ([1], [2])
    assert sorted(entry.number for entry in update_session.order({})) == [1, 2]  # type: ignore[union-attr]
