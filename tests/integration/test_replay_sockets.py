"""WebSockets at the replay server: recorded ones are replayed message by message, with closes and misses."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import Any

import pytest
from tests.support.replaying import chat, exchange, session, taped, user
from tests.support.sockets import create, events, message, socket

import wiretape
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.compare.difference import Tier
from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Injected, LiveRequest, Miss, Outcome
from wiretape.model.http import Close, Ended, Exchange

websockets = pytest.importorskip("websockets", reason="websockets is not installed")
openai = pytest.importorskip("openai", reason="the openai SDK is not installed")

from websockets.sync.client import ClientConnection, connect  # noqa: E402

PATH = "/api.example.com/v1/responses"
PATIENCE = 30


def dial(replaying: ReplayServer, path: str = PATH, **options: Any) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{replaying.port}{path}", **options)


def ask(talk: ClientConnection, *said: Any) -> None:
    for one in said:
        talk.send(one if isinstance(one, str | bytes) else json.dumps(one))


def hear(talk: ClientConnection, count: int = 1) -> list[Any]:
    return [talk.recv(timeout=PATIENCE) for _ in range(count)]


def two_calls() -> Exchange:
    """A connection with two responses, as the Responses API speaks."""
    return socket([create("hi"), *events("r1", message("one")), create("more"), *events("r2", message("two"))])


def texts(connection: Any, answered: str) -> list[str]:
    found = []
    for event in connection:
        if event.type == "response.output_text.delta":
            found.append(event.delta)
        if event.type == answered:
            return found
    return found


@pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager:DeprecationWarning")  # the SDK does not
def test_openai_s_responses_connect_gets_its_recorded_responses() -> None:
    seen: list[Outcome] = []
    replay = session(two_calls())
    with ReplayServer(replay, ReplayServerOptions(on_outcome=seen.append)) as replaying:
        base = f"http://127.0.0.1:{replaying.port}/api.example.com/v1"
        with openai.OpenAI(base_url=base, api_key="sk-test") as client, client.responses.connect() as connection:
            got = []
            for text in ("hi", "more"):
                connection.response.create(model="m", input=[{"role": "user", "content": text}])
                got.append("".join(texts(connection, "response.completed")))
    assert got == ["one", "two"]
    report = replay.report()
    assert [(played.tier, played.answer.call) for played in report.played] == [("exact", 1), ("exact", 2)]
    assert (report.sockets, report.missed, report.left_over) == (0, (), ())
    assert [type(outcome) for outcome in seen] == [Answer, Answer]
    told = [replay.call_of(outcome) for outcome in seen if isinstance(outcome, Answer)]
    assert [(call.number, call.frames[0]) for call in told if call is not None] == [(1, 1), (2, 8)]


def test_unrequested_calls_of_an_opened_connection_are_left_over() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"), replace(two_calls(), number=2))
    with ReplayServer(replay) as replaying, dial(replaying) as talk:
        ask(talk, create("hi")[1])
        hear(talk, len(events("r1", message("one"))))
    report = replay.report()
    assert [played.answer.call for played in report.played] == [2]
    assert [left.call for left in report.left_over] == [1, 3]
    assert report.sockets == 0


def test_frames_of_the_server_wait_for_the_client_s_earlier_ones_and_pings_are_answered_meanwhile() -> None:
    replay = session(socket([("client", "a"), ("client", "b"), ("server", "after both"), ("server", b"\x00\xff")]))
    with ReplayServer(replay) as replaying, dial(replaying) as talk:
        ask(talk, "a")
        assert talk.ping().wait(PATIENCE)
        with pytest.raises(TimeoutError):
            talk.recv(timeout=0.2)
        ask(talk, "b")
        assert hear(talk, 2) == ["after both", b"\x00\xff"]


def test_a_server_that_sends_first_is_played_immediately() -> None:
    replay = session(socket([("server", "welcome"), ("client", "thanks"), ("server", "bye")]))
    with ReplayServer(replay) as replaying, dial(replaying) as talk:
        assert hear(talk) == ["welcome"]
        ask(talk, "thanks")
        assert hear(talk) == ["bye"]


@pytest.mark.parametrize("offers", ["deflate", None])
def test_an_offer_to_compress_is_declined(offers: str | None) -> None:
    text = "你好 " * 40_000
    replay = session(socket([("client", text), ("server", text)]))
    with ReplayServer(replay) as replaying, dial(replaying, compression=offers, max_size=None) as talk:
        assert "sec-websocket-extensions" not in talk.response.headers
        ask(talk, text)
        assert hear(talk) == [text]


def test_a_subprotocol_is_negotiated_only_if_recorded_and_offered() -> None:
    from wiretape.model.http import Headers, Response

    spoken = socket([("client", "a"), ("server", "b")])
    agreed = Response(101, Headers([("sec-websocket-protocol", "realtime"), ("x-request-id", "r1")]))
    for offered, got in ((["realtime", "other"], "realtime"), (["other"], None), (None, None)):
        replay = session(replace(spoken, response=agreed))
        with ReplayServer(replay) as replaying, dial(replaying, subprotocols=offered) as talk:
            assert talk.subprotocol == got
            assert talk.response.headers["x-request-id"] == "r1"


@pytest.mark.parametrize("code", [1000, 1011, 1013, 4000])
def test_the_server_s_close_comes_with_its_code_and_reason_after_its_last_message(code: int) -> None:
    close = Close(code, "come back later", "server")
    replay = session(socket([("client", "a"), ("server", "b")], close=close))
    with ReplayServer(replay) as replaying, dial(replaying) as talk:
        ask(talk, "a")
        assert hear(talk) == ["b"]
        with pytest.raises(websockets.exceptions.ConnectionClosed) as closed:
            hear(talk)
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (code, "come back later")


def test_a_connection_that_broke_off_breaks_off_again() -> None:
    replay = session(socket([("client", "a"), ("server", "b")], ended=Ended.UPSTREAM_CLOSED))
    with ReplayServer(replay) as replaying, dial(replaying) as talk:
        ask(talk, "a")
        assert hear(talk) == ["b"]
        with pytest.raises(websockets.exceptions.ConnectionClosedError) as closed:
            hear(talk)
    assert closed.value.rcvd is None  # no close frame came


def test_an_unrecorded_message_is_a_miss_that_is_reported_immediately() -> None:
    seen: list[Outcome] = []
    replay = session(two_calls())
    with ReplayServer(replay, ReplayServerOptions(on_outcome=seen.append)) as replaying, dial(replaying) as talk:
        ask(talk, create("hi")[1])
        hear(talk, len(events("r1", message("one"))))
        ask(talk, create("something else")[1])
        said = json.loads(talk.recv(timeout=PATIENCE))
        with pytest.raises(websockets.exceptions.ConnectionClosedError) as closed:
            hear(talk)
    assert closed.value.rcvd.code == 1008
    assert (said["type"], said["status"], said["error"]["code"]) == ("error", 400, "wiretape_miss")
    assert "diverges from call 2 at input[0].content" in said["error"]["message"]
    assert [missed.reason for missed in replay.report().missed] == ["diverged"]
    assert [type(outcome) for outcome in seen] == [Answer, Miss]


def test_a_handshake_that_was_never_recorded_is_refused_as_a_request_is() -> None:
    replay = session(two_calls())
    with ReplayServer(replay) as replaying, pytest.raises(websockets.exceptions.InvalidStatus) as refused:
        dial(replaying, "/api.example.com/elsewhere").__enter__()
    assert refused.value.response.status_code == 404
    assert [strayed.what for strayed in replay.report().strayed] == ["GET api.example.com/elsewhere"]


def test_a_second_connection_where_one_was_recorded_is_a_miss_before_it_opens() -> None:
    replay = session(socket([("client", "a"), ("server", "b")]))
    with ReplayServer(replay) as replaying:
        with dial(replaying) as talk:
            ask(talk, "a")
            hear(talk)
        with pytest.raises(websockets.exceptions.InvalidStatus) as refused:
            dial(replaying).__enter__()
    assert refused.value.response.status_code == 400
    assert b"already played" in refused.value.response.body


def test_concurrent_connections_get_separate_recordings() -> None:
    """Subagents open a socket each, before the first of them has said a word."""
    every = [socket([("client", f"agent {n}"), ("server", f"for {n}")], number=n) for n in (1, 2, 3)]
    twins = [socket([("client", "same"), ("server", f"twin {n}")], number=n) for n in (4, 5)]
    replay = session(*every, *twins)
    with ReplayServer(replay) as replaying, ExitStack() as open_at_once:
        talks = [open_at_once.enter_context(dial(replaying)) for _ in range(5)]
        heard = []
        for talk, said in zip(talks, ["agent 3", "agent 1", "same", "agent 2", "same"], strict=True):
            ask(talk, said)
            heard += hear(talk)
    assert heard == ["for 3", "for 1", "twin 4", "for 2", "twin 5"]
    assert replay.report().sockets == 0


def test_recorded_pauses_are_kept_at_pace_1_and_end_with_the_client() -> None:
    said: Sequence[Any] = [("client", "a"), *(("server", f"{n}") for n in range(30))]  # 10 ms each
    replay = session(socket(said), socket([("client", "b"), ("server", "x")], number=2))
    with ReplayServer(replay, ReplayServerOptions(pace=1)) as replaying, dial(replaying) as talk:
        ask(talk, "a")
        began = time.monotonic()
        assert hear(talk, 30) == [f"{n}" for n in range(30)]
        assert time.monotonic() - began >= 0.25
    replay = session(socket(said))
    with (
        ReplayServer(replay, ReplayServerOptions(pace=100_000)) as replaying,
        dial(replaying) as talk,
    ):  # leaving does not wait
        ask(talk, "a")


def test_bytes_that_are_no_frames_end_the_connection_only() -> None:
    import socket as sockets

    replay = session(socket([("client", "a"), ("server", "b")]))
    with ReplayServer(replay) as replaying:
        with sockets.create_connection(("127.0.0.1", replaying.port), PATIENCE) as raw:
            raw.sendall(
                f"GET {PATH} HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
                "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
            )
            assert raw.recv(4096).startswith(b"HTTP/1.1 101 ")
            raw.sendall(b"\xc1\x01\x00")  # compressed without negotiation
            assert raw.recv(4096)[2:4] == (1002).to_bytes(2, "big")
        with dial(replaying) as talk:
            ask(talk, "a")
            assert hear(talk) == ["b"]
    assert isinstance(replay, ReplaySession)


def test_an_interposer_can_hold_each_message() -> None:
    held: list[tuple[bytes, type[Outcome]]] = []

    async def interpose(request: LiveRequest, outcome: Outcome) -> Outcome:
        held.append((request.body, type(outcome)))
        await asyncio.sleep(0.05)
        return outcome

    replay = session(socket([("client", "a"), ("server", "b"), ("client", "c"), ("server", "d")]))
    with ReplayServer(replay, ReplayServerOptions(interpose=interpose)) as replaying, dial(replaying) as talk:
        for said, answer in (("a", "b"), ("c", "d")):
            ask(talk, said)
            assert hear(talk) == [answer]
    assert held == [(b"a", Answer), (b"c", Answer)]


@pytest.mark.parametrize("way", ["tunnel", "absolute form"])
def test_a_socket_that_was_recorded_without_tls_is_played_through_the_proxy_port(way: str) -> None:
    import socket as sockets

    url = "http://models.example.com/v1/responses"
    replay = session(socket([("client", "a"), ("server", "b")], url=url))
    with ReplayServer(replay) as replaying:
        if way == "tunnel":
            proxy = f"http://127.0.0.1:{replaying.proxy_port}"
            with connect(url.replace("http", "ws"), proxy=proxy) as talk:
                ask(talk, "a")
                assert hear(talk) == ["b"]
        else:
            with sockets.create_connection(("127.0.0.1", replaying.proxy_port), PATIENCE) as raw:
                raw.sendall(
                    f"GET {url} HTTP/1.1\r\nhost: models.example.com\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
                    "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
                )
                assert raw.recv(4096).startswith(b"HTTP/1.1 101 ")
                raw.sendall(b"\x81\x81\x00\x00\x00\x00a")
                assert raw.recv(4096) == b"\x81\x01b"
    assert [played.tier for played in replay.report().played] == ["exact"]
    assert replay.report().passed == {}


# -- faults, and repeated answers


def faulty(*faults: str, **options: Any) -> ReplaySession:
    return session(two_calls(), faults=tuple(map(parse_fault, faults)), **options)


FIRST = len(events("r1", message("one")))


def at_second_call(replaying: ReplayServer, talk: ClientConnection) -> None:
    """The first call answered, the second one asked for."""
    ask(talk, create("hi")[1])
    hear(talk, FIRST)
    ask(talk, create("more")[1])


@pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager:DeprecationWarning")  # the SDK does not
def test_openais_connection_gets_a_refusal_event_and_then_the_answer() -> None:
    seen: list[Outcome] = []
    replay = faulty("429@2:after=10ms")
    with ReplayServer(replay, ReplayServerOptions(on_outcome=seen.append)) as replaying:
        base = f"http://127.0.0.1:{replaying.port}/api.example.com/v1"
        with openai.OpenAI(base_url=base, api_key="sk-test") as client, client.responses.connect() as connection:
            got = []
            for text in ("hi", "more", "more"):
                connection.response.create(model="m", input=[{"role": "user", "content": text}])
                for event in connection:
                    if event.type in ("response.completed", "error"):
                        got.append(event)
                        break
    assert [event.type for event in got] == ["response.completed", "error", "response.completed"]
    assert (got[1].status, got[1].error.code) == (429, "wiretape_fault")
    assert got[1].error.headers == {"retry-after": "1", "retry-after-ms": "10"}
    assert [type(outcome) for outcome in seen] == [Answer, Injected, Answer]


@pytest.mark.parametrize("way", ["server", "proxy port"])
def test_a_cut_ends_the_connection_without_a_close_and_a_reset_resets_it(way: str) -> None:
    import socket as sockets

    url = "http://models.example.com/v1/responses"
    spoken = replace(two_calls(), request=replace(two_calls().request, url=url))
    for fault, error in (("cut@1:event=2", None), ("reset@1:event=2", ConnectionResetError)):
        replay = session(spoken, faults=(parse_fault(fault),))
        with ReplayServer(replay) as replaying:
            port, target = replaying.port, "/models.example.com/v1/responses"
            if way == "proxy port":
                port, target = replaying.proxy_port, url
            with sockets.create_connection(("127.0.0.1", port), PATIENCE) as raw:
                raw.sendall(shake(target))
                assert raw.recv(4096).startswith(b"HTTP/1.1 101 ")
                raw.sendall(masked(json.dumps(create("hi")[1])))
                received = bytearray()
                with pytest.raises(error) if error is not None else nullcontext():
                    while data := raw.recv(65536):
                        received += data
        assert received.count(b'"type":"response.') == 2
        assert b"\x88" not in received[:1]  # no close frame


def shake(target: str) -> bytes:
    return (
        f"GET {target} HTTP/1.1\r\nhost: models.example.com\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()


def masked(text: str) -> bytes:
    data = text.encode()
    head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else b"\x81\xfe" + len(data).to_bytes(2, "big")
    return head + bytes(4) + data


def test_a_stalled_connection_stays_silent_and_a_new_one_gets_the_answer() -> None:
    replay = faulty("stall@2:event=1")
    with ReplayServer(replay) as replaying:
        with dial(replaying, ping_interval=None, close_timeout=0.1) as talk:
            at_second_call(replaying, talk)
            assert json.loads(*hear(talk))["type"] == "response.created"
            pong = talk.ping()
            with pytest.raises(TimeoutError):
                talk.recv(timeout=0.2)
            assert not pong.is_set()
        with dial(replaying) as talk:
            ask(talk, create("more")[1])
            assert json.loads(hear(talk, 6)[-1])["type"] == "response.completed"
    assert replay.report().left_over == ()


def test_a_refused_handshake_is_an_http_answer_and_the_next_one_opens() -> None:
    with ReplayServer(faulty("503@1:handshake")) as replaying:
        with pytest.raises(websockets.exceptions.InvalidStatus) as refused:
            dial(replaying).__enter__()
        assert (refused.value.response.status_code, refused.value.response.headers["retry-after"]) == (503, "1")
        with dial(replaying) as talk:
            at_second_call(replaying, talk)
            hear(talk, 6)


def test_a_slow_call_is_slow_and_a_bounded_stall_continues() -> None:
    for fault, least in (("slow@1:x5", 6 * 0.05), ("stall@1:for=300ms", 0.3)):
        with ReplayServer(faulty(fault)) as replaying, dial(replaying) as talk:
            began = time.monotonic()
            ask(talk, create("hi")[1])
            hear(talk, FIRST)
            assert time.monotonic() - began >= least - 0.05


def test_with_repeat_a_program_may_run_through_its_connection_twice() -> None:
    replay = faulty(repeat=True)
    with ReplayServer(replay) as replaying:
        for _ in range(2):
            with dial(replaying) as talk:
                at_second_call(replaying, talk)
                hear(talk, 6)
    assert [played.repeated for played in replay.report().played] == [False, False, True, True]


# -- the same in process


@pytest.mark.parametrize("fault", ["cut@2:event=1", "reset@2:event=1", "stall@2:event=1"])
def test_in_process_a_connection_breaks_immediately_and_a_new_one_continues(fault: str) -> None:
    """A stall without an end, too: the library may have no time limit."""
    with wiretape.replay(taped(two_calls()), faults=[fault]) as replay:
        with connect("wss://api.example.com/v1/responses") as talk:
            ask(talk, create("hi")[1])
            hear(talk, FIRST)
            ask(talk, create("more")[1])
            hear(talk)
            with pytest.raises(websockets.exceptions.ConnectionClosedError) as closed:
                hear(talk)
            assert closed.value.rcvd is None
        with connect("wss://api.example.com/v1/responses") as talk:
            ask(talk, create("more")[1])
            hear(talk, 6)
    assert [mishap.fault for mishap in replay.report.injected] == [fault]
    assert replay.report.left_over == ()


def test_in_process_pings_are_answered_during_a_pause_that_ends_with_the_client() -> None:
    faults = ["stall@1:event=1:for=60m"]
    with (
        wiretape.replay(taped(two_calls()), faults=faults),
        connect("wss://api.example.com/v1/responses") as talk,
    ):
        ask(talk, create("hi")[1])
        hear(talk)
        assert talk.ping().wait(PATIENCE)
    _wait_for(lambda: not [one for one in threading.enumerate() if one.name == "wiretape-socket"])


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    assert condition()


def test_httpx2_meets_refusals_and_a_refused_handshake_in_process() -> None:
    httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed")
    pytest.importorskip("httpx2.websockets", reason="httpx2 has no WebSockets here")
    faults = ["503@1:handshake", "429@1"]
    url = "wss://api.example.com/v1/responses"
    with wiretape.replay(taped(two_calls()), faults=faults) as replay, httpx2.Client() as client:
        with pytest.raises(httpx2.websockets.WebSocketUpgradeError) as refused, client.websocket(url):
            pass
        assert refused.value.response.status_code == 503
        with client.websocket(url) as talk:
            talk.send_text(json.dumps(create("hi")[1]))
            assert json.loads(talk.receive_text(timeout=PATIENCE))["status"] == 429
            talk.send_text(json.dumps(create("hi")[1]))
            assert [json.loads(talk.receive_text(timeout=PATIENCE))["type"] for _ in range(6)][-1] == (
                "response.completed"
            )
    assert [mishap.fault for mishap in replay.report.injected] == faults


def test_by_position_a_changed_prompt_gets_the_recorded_answers_through_the_server() -> None:
    replay = session(two_calls(), tier=Tier.POSITION)
    with ReplayServer(replay) as replaying, dial(replaying) as talk:
        for text in ("another", "and another"):
            ask(talk, create(text)[1])
            assert json.loads(hear(talk, 6)[-1])["type"] == "response.completed"
    assert [played.tier for played in replay.report().played] == ["position", "position"]
