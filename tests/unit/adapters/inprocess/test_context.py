"""What contexts of this process take, and what they refuse."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.replaying import chat, exchange, reply, user

import wiretape
from wiretape.errors import MissError, UsageError
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

httpx = pytest.importorskip("httpx")

OPENAI = "https://api.openai.com/v1/chat/completions"
HEADER = Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test")
TAPE = Tape(Path("hand.tape"), HEADER, (exchange(1, chat(user("hi")), reply("one"), url=OPENAI),), (), False)


class Agent:
    """Is called, and asks."""

    async def __call__(self) -> int:
        async with httpx.AsyncClient() as client:
            return int((await client.post(OPENAI, json=chat(user("hi")))).status_code)


class Words:
    def __call__(self) -> Iterator[str]:
        yield "hi"


@pytest.mark.parametrize("made", [Agent(), functools.partial(Agent.__call__, Agent())])
def test_what_is_awaited_is_decorated_as_such(made: Callable[[], Any]) -> None:
    assert asyncio.run(wiretape.replay(TAPE)(made)()) == 200


def test_a_coroutine_that_would_run_outside_is_refused_and_closed() -> None:
    with pytest.raises(UsageError, match="returns a coroutine, which would run outside"):
        wiretape.replay(TAPE)(lambda: Agent()())()


def test_an_object_that_generates_is_refused() -> None:
    with pytest.raises(UsageError, match="is a generator: open the context inside it"):
        wiretape.replay(TAPE)(Words())


def test_one_pattern_may_be_given_as_a_string() -> None:
    """As letters, `hi` would hide every h and i, and the request would match."""
    with pytest.raises(MissError, match="live      ih"), wiretape.replay(TAPE, mask="hi"):
        httpx.post(OPENAI, json=chat(user("ih")))
    with wiretape.replay(TAPE, mask="h[aio]+") as ctx:
        httpx.post(OPENAI, json=chat(user("hoi")))
    assert not ctx.report.left_over


def test_one_fault_may_be_given_as_a_string() -> None:
    with wiretape.replay(TAPE, faults="429@1"):
        assert httpx.post(OPENAI, json=chat(user("hi"))).status_code == 429


def no_such_host(*_: object) -> None:
    raise socket.gaierror(8, "no such host")


def test_one_host_may_be_given_as_a_string(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with wiretape.replay(TAPE, pass_hosts="127.0.0.1") as ctx, pytest.raises(httpx.ConnectError, match="refused"):
        httpx.get("http://127.0.0.1:9/")
    assert ctx.report.passed == {"127.0.0.1:9": 1}
    monkeypatch.setattr(socket, "getaddrinfo", no_such_host)
    with wiretape.record(tmp_path / "x.tape", hosts="*.invalid") as made, pytest.raises(httpx.ConnectError):
        httpx.get("http://model.invalid/")
    assert made.summary is not None
    assert made.summary.exchanges == 1


def test_a_pace_that_cannot_be_meant_is_refused() -> None:
    with pytest.raises(UsageError, match="pace is -1: 0 plays at once"):
        wiretape.replay(TAPE, pace=-1)


def test_a_pattern_that_is_none_is_named_and_not_blamed_on_the_settings() -> None:
    with pytest.raises(UsageError, match=r"^mask = '\(' is not a regular expression: missing \)[^\n]*$"):
        wiretape.replay(TAPE, mask=["fine", "("])


def missed(end: BaseException) -> None:
    httpx.post(OPENAI, json=chat(user("ho")))
    raise end


@pytest.mark.parametrize("end", [SystemExit(), SystemExit(0), GeneratorExit()])
def test_who_ends_content_hides_no_miss(end: BaseException) -> None:
    with pytest.raises(MissError, match="live      ho"), wiretape.replay(TAPE):
        missed(end)


@pytest.mark.parametrize("end", [SystemExit(2), asyncio.CancelledError()])
def test_what_ends_a_program_or_a_task_without_a_traceback_tells_the_miss(
    end: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(type(end)), wiretape.replay(TAPE):
        missed(end)
    assert capsys.readouterr().err.startswith("wiretape: no call on hand.tape answers POST /v1/chat/completions\n")


def test_a_context_may_be_left_twice() -> None:
    """By an exit stack, and by hand."""
    with wiretape.replay(TAPE) as ctx:
        ctx.__exit__(None, None, None)
        with wiretape.replay(TAPE):
            assert httpx.post(OPENAI, json=chat(user("hi"))).status_code == 200
