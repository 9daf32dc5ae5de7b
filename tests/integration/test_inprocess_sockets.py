"""WebSockets in process, of httpx2, websockets and aiohttp: recorded and replayed with their closes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.inprocess import only
from tests.support.replaying import taped
from tests.support.upstream import Upstream

import wiretape
from wiretape.errors import MissError
from wiretape.model.http import (
    Close,
    Ended,
    Exchange,
    Headers,
    Request,
    Response,
    Sender,
    TextBody,
    WsMessage,
    body_bytes,
)

httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed")
pytest.importorskip("httpx2.websockets", reason="httpx2 has no WebSockets here")
aiohttp = pytest.importorskip("aiohttp", reason="aiohttp is not installed")
websockets = pytest.importorskip("websockets", reason="websockets is not installed")
openai = pytest.importorskip("openai", reason="the openai SDK is not installed")

URL = "https://api.openai.com/v1/responses"


def by_websockets(url: str, said: list[str]) -> list[str]:
    from websockets.sync.client import connect

    with connect(url) as socket:
        heard = []
        for text in said:
            socket.send(text)
            heard.append(str(socket.recv(timeout=5)))
        return heard


def by_websockets_async(url: str, said: list[str]) -> list[str]:
    from websockets.asyncio.client import connect

    async def run() -> list[str]:
        async with connect(url) as socket:
            heard = []
            for text in said:
                await socket.send(text)
                heard.append(str(await asyncio.wait_for(socket.recv(), 5)))
            return heard

    return asyncio.run(run())


def by_aiohttp(url: str, said: list[str]) -> list[str]:
    async def run() -> list[str]:
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
            heard = []
            for text in said:
                await socket.send_str(text)
                heard.append(str(await socket.receive_str(timeout=5)))
            return heard

    return asyncio.run(run())


def by_httpx2(url: str, said: list[str]) -> list[str]:
    with httpx2.Client() as client, client.websocket(url) as socket:
        heard = []
        for text in said:
            socket.send_text(text)
            heard.append(str(socket.receive_text(timeout=5)))
        return heard


def by_httpx2_async(url: str, said: list[str]) -> list[str]:
    async def run() -> list[str]:
        async with httpx2.AsyncClient() as client, client.websocket(url) as socket:
            heard = []
            for text in said:
                await socket.send_text(text)
                heard.append(str(await socket.receive_text(timeout=5)))
            return heard

    return asyncio.run(run())


def by_httpx2_trio(url: str, said: list[str]) -> list[str]:
    trio = pytest.importorskip("trio", reason="trio is not installed")

    async def run() -> list[str]:
        async with httpx2.AsyncClient() as client, client.websocket(url) as socket:
            heard = []
            for text in said:
                await socket.send_text(text)
                heard.append(str(await socket.receive_text(timeout=5)))
            return heard

    return list(trio.run(run))


def by_websockets_trio(url: str, said: list[str]) -> list[str]:
    trio = pytest.importorskip("trio", reason="trio is not installed")
    connect = pytest.importorskip("websockets.trio.client", reason="this version has no client for trio").connect

    async def run() -> list[str]:
        async with connect(url, max_size=None) as socket:
            heard = []
            for text in said:
                await socket.send(text)
                with trio.fail_after(5):
                    heard.append(str(await socket.recv()))
            return heard

    return list(trio.run(run))


Talk = Callable[[str, list[str]], list[str]]
DOORS: dict[str, Talk] = {
    "websockets": by_websockets,
    "websockets-async": by_websockets_async,
    "aiohttp": by_aiohttp,
    "httpx2": by_httpx2,
    "httpx2-async": by_httpx2_async,
}
ON_TRIO: dict[str, Talk] = {"httpx2": by_httpx2_trio, "websockets": by_websockets_trio}
SAID = ["hello", "你好 " * 8_000, '{"type": "x"}']


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    made = {}
    for name, talk in DOORS.items():
        path = tmp_path_factory.mktemp("tapes") / f"{name}.tape"
        with Upstream() as upstream, wiretape.record(path):
            url = f"ws{upstream.url.removeprefix('http')}/ws"
            assert talk(url, SAID) == SAID
        made[name] = (path, url)
    return made


@pytest.mark.parametrize("library", ON_TRIO)
def test_sockets_on_trio_are_recorded_and_replayed(library: str, tmp_path: Path) -> None:
    path = tmp_path / "trio.tape"
    with Upstream() as upstream, wiretape.record(path):
        url = f"ws{upstream.url.removeprefix('http')}/ws"
        assert ON_TRIO[library](url, SAID) == SAID
    with wiretape.replay(path) as ctx:
        assert ON_TRIO[library](url, SAID) == SAID
    assert not ctx.report.left_over


@pytest.mark.parametrize("name", DOORS)
def test_a_socket_is_recorded_with_its_messages_and_its_close(
    recordings: dict[str, tuple[Path, str]], name: str
) -> None:
    recorded = only(recordings[name][0])
    assert recorded.request.url == "http" + recordings[name][1].removeprefix("ws")
    assert recorded.response is not None
    assert recorded.response.status == 101
    assert [(m.sender, body_bytes(m.body).decode()) for m in recorded.messages] == [
        (sender, text) for text in SAID for sender in ("client", "server")
    ]
    assert recorded.ended is Ended.COMPLETE
    assert recorded.close is not None
    assert (recorded.close.code, recorded.close.sender) == (1000, "client")


@pytest.mark.parametrize("recorded", DOORS)
@pytest.mark.parametrize("talk", DOORS.values(), ids=DOORS.keys())
def test_a_socket_that_one_door_recorded_every_door_replays(
    recordings: dict[str, tuple[Path, str]], recorded: str, talk: Talk
) -> None:
    tape, url = recordings[recorded]
    with wiretape.replay(tape) as ctx:
        assert talk(url, SAID) == SAID
    assert [played.tier for played in ctx.report.played] == ["exact"]
    assert ctx.report.sockets == 0


@pytest.mark.parametrize("talk", DOORS.values(), ids=DOORS.keys())
def test_recording_a_played_socket_gives_the_recording_again(
    recordings: dict[str, tuple[Path, str]], talk: Talk, tmp_path: Path
) -> None:
    tape, url = recordings["websockets"]
    with wiretape.replay(tape), wiretape.record(tmp_path / "again.tape"):
        assert talk(url, SAID) == SAID
    one, two = only(tape), only(tmp_path / "again.tape")
    assert [(m.sender, m.body) for m in two.messages] == [(m.sender, m.body) for m in one.messages]
    assert (two.close, two.ended) == (one.close, one.ended)


def socket_exchange(number: int, *messages: tuple[Sender, Any], close: Close | None = None, url: str = URL) -> Exchange:
    said = tuple(
        WsMessage(10 * at, sender, TextBody(data if isinstance(data, str) else json.dumps(data)))
        for at, (sender, data) in enumerate(messages, 1)
    )
    return Exchange(
        number,
        0,
        Request("GET", url, Headers([("upgrade", "websocket")])),
        Response(101, Headers([("upgrade", "websocket")])),
        ended=Ended.COMPLETE,
        messages=said,
        close=close or Close(1000, "", "client"),
    )


def created(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]
    return {"type": "response.create", "model": "m-1", "input": content, **more}


def events(text: str, id: str) -> list[dict[str, Any]]:
    base = {"id": id, "object": "response", "created_at": 1, "model": "m-1", "status": "in_progress", "output": [],
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}  # fmt: skip
    return [
        {"type": "response.created", "sequence_number": 0, "response": base},
        {"type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_1", "output_index": 0,
         "content_index": 0, "delta": text, "logprobs": []},
        {"type": "response.completed", "sequence_number": 2,
         "response": {**base, "status": "completed", "output": [item]}},
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager:DeprecationWarning")  # the SDK does not
def test_openai_s_responses_connect_replays_sync_and_async() -> None:
    first, second = events("one", "resp_1"), events("two", "resp_2")
    talk: list[tuple[Sender, Any]] = [("client", created("hi")), *(("server", event) for event in first)]
    talk += [("client", created("more")), *(("server", event) for event in second)]
    tape = taped(socket_exchange(1, *talk), socket_exchange(2, *talk))

    def ask(text: str) -> dict[str, Any]:
        return {key: value for key, value in created(text).items() if key != "type"}

    async def by_async() -> list[str]:
        deltas = []
        async with openai.AsyncOpenAI() as client, client.responses.connect() as connection:
            for text in ("hi", "more"):
                await connection.response.create(**ask(text))
                async for event in connection:
                    if event.type == "response.output_text.delta":
                        deltas.append(event.delta)
                    if event.type == "response.completed":
                        break
        return deltas

    with wiretape.replay(tape) as ctx:
        deltas = []
        with openai.OpenAI() as client, client.responses.connect() as connection:
            for text in ("hi", "more"):
                connection.response.create(**ask(text))
                for event in connection:
                    if event.type == "response.output_text.delta":
                        deltas.append(event.delta)
                    if event.type == "response.completed":
                        break
        assert deltas == ["one", "two"]
        assert asyncio.run(by_async()) == ["one", "two"]
    assert sorted(played.answer.call or 0 for played in ctx.report.played) == [1, 2, 3, 4]
    assert (ctx.report.sockets, ctx.report.left_over) == (0, ())


def test_frames_of_the_server_wait_for_the_client_s_earlier_ones() -> None:
    from websockets.sync.client import connect

    tape = taped(socket_exchange(1, ("client", "a"), ("client", "b"), ("server", "after both"), ("server", "done")))
    with wiretape.replay(tape), connect(URL.replace("https", "wss")) as socket:
        socket.send("a")
        with pytest.raises(TimeoutError):
            socket.recv(timeout=0.2)
        socket.send("b")
        assert [socket.recv(timeout=5), socket.recv(timeout=5)] == ["after both", "done"]


def test_an_unrecorded_message_is_a_miss_with_its_position() -> None:
    from websockets.sync.client import connect

    tape = taped(socket_exchange(1, ("client", created("hi")), ("server", "x")))
    ctx = wiretape.replay(tape)
    ctx.__enter__()
    with connect(URL.replace("https", "wss")) as socket:
        socket.send(json.dumps(created("other")))
        said = json.loads(socket.recv(timeout=5))
        with pytest.raises(websockets.exceptions.ConnectionClosedError) as closed:
            socket.recv(timeout=5)
    with pytest.raises(MissError, match=r"live      other"):
        ctx.__exit__(None, None, None)
    assert closed.value.rcvd.code == 1008
    assert (said["type"], said["status"], said["error"]["code"]) == ("error", 400, "wiretape_miss")
    assert "input[0].content[0].text" in said["error"]["message"]
    assert [missed.reason for missed in ctx.report.missed] == ["diverged"]


def test_the_server_s_close_comes_with_its_code_after_its_last_message() -> None:
    from websockets.sync.client import connect

    close = Close(1013, "come back later", "server")
    with (
        wiretape.replay(taped(socket_exchange(1, ("client", "a"), ("server", "b"), close=close))),
        connect(URL.replace("https", "wss")) as socket,
    ):
        socket.send("a")
        assert socket.recv(timeout=5) == "b"
        with pytest.raises(websockets.exceptions.ConnectionClosedError) as closed:
            socket.recv(timeout=5)
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, "come back later")


def test_several_sockets_are_distinguished_by_their_first_message() -> None:
    from websockets.sync.client import connect

    tape = taped(*(socket_exchange(n, ("client", f"agent {n}"), ("server", f"for {n}")) for n in (1, 2, 3)))
    with wiretape.replay(tape):
        for n in (3, 1, 2):
            with connect(URL.replace("https", "wss")) as socket:
                socket.send(f"agent {n}")
                assert socket.recv(timeout=5) == f"for {n}"


def test_values_that_change_between_runs_are_drift_not_misses() -> None:
    from websockets.sync.client import connect

    was = created("it is 2026-02-28 15:05:30", prompt_cache_key="one")
    now = created("it is 2027-03-01 09:00:00", prompt_cache_key="two")
    with (
        wiretape.replay(taped(socket_exchange(1, ("client", was), ("server", "ok")))) as ctx,
        connect(URL.replace("https", "wss")) as socket,
    ):
        socket.send(json.dumps(now))
        assert socket.recv(timeout=5) == "ok"
    assert [played.tier for played in ctx.report.played] == ["masked"]
    assert {drifted.where for drifted in ctx.report.drifted} == {"input[0].content[0].text", "prompt_cache_key"}


def test_a_socket_that_was_never_recorded_is_refused() -> None:
    from websockets.sync.client import connect

    with (
        wiretape.replay(taped(socket_exchange(1, ("client", "a")))) as ctx,
        pytest.raises(websockets.exceptions.InvalidStatus) as refused,
    ):
        connect("wss://example.com/other").__enter__()
    assert refused.value.response.status_code == 404
    assert [strayed.what for strayed in ctx.report.strayed] == ["GET example.com/other"]
