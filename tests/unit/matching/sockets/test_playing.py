"""Playback of recorded WebSockets: order of messages, choice of the connection, misses."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.support.replaying import session

from wiretape.matching.sockets.playing import SocketFrame, SocketPlay, miss_message
from wiretape.matching.values import LiveRequest, Miss, Stray
from wiretape.model.http import (
    BytesBody,
    Close,
    Ended,
    Exchange,
    Headers,
    Request,
    Response,
    Sender,
    TextBody,
    WsMessage,
)

URL = "https://api.example.com/v1/responses"
SHAKE = Headers([("upgrade", "websocket")])


def socket(number: int, *said: tuple[Sender, Any], url: str = URL, close: Close | None = None, **more: Any) -> Exchange:
    messages = []
    for at, (sender, data) in enumerate(said, 1):
        body = BytesBody(data) if isinstance(data, bytes) else TextBody(data if isinstance(data, str) else dumped(data))
        messages.append(WsMessage(100 * at, sender, body))
    ended = more.pop("ended", Ended.COMPLETE)
    return Exchange(number, 0, Request("GET", url, SHAKE), Response(101, SHAKE), ended, None, tuple(messages), close)


def dumped(value: Any) -> str:
    return orjson.dumps(value).decode()


def opened(made: Any, url: str = URL) -> SocketPlay:
    play = made.open_socket(LiveRequest("GET", url, SHAKE))
    assert isinstance(play, SocketPlay)
    return play


def texts(play: SocketPlay) -> list[str | bytes]:
    return [frame.data for frame in play.due()]


def test_server_messages_wait_for_the_earlier_client_messages() -> None:
    play = opened(
        session(socket(1, ("client", "a"), ("server", "1"), ("client", "b"), ("client", "c"), ("server", "2")))
    )
    assert texts(play) == []
    play.receive("a")
    assert texts(play) == ["1"]
    play.receive("c")  # before its time: as good as in time
    assert texts(play) == []
    play.receive("b")
    assert texts(play) == ["2"]
    assert texts(play) == []


def test_a_greeting_of_the_server_has_its_recorded_pause() -> None:
    play = opened(session(socket(1, ("server", "welcome"), ("server", b"\x00\xff"), ("client", "a"))))
    assert play.due() == [SocketFrame(100, "welcome"), SocketFrame(100, b"\x00\xff")]


def test_two_equal_connections_are_played_in_their_order_each_once() -> None:
    made = session(*(socket(n, ("client", "hi"), ("server", f"answer {n}")) for n in (1, 2)))
    for n in (1, 2):
        play = opened(made)
        play.receive("hi")
        assert texts(play) == [f"answer {n}"]
    missed = made.open_socket(LiveRequest("GET", URL, SHAKE))
    assert isinstance(missed, Miss)
    assert "x1 was recorded as a WebSocket, and was already played" in missed.message
    assert made.report().sockets == 0


def test_an_exact_connection_goes_before_one_that_only_matches_masked() -> None:
    made = session(
        socket(1, ("client", "at 2026-01-01 10:00:00"), ("server", "old")),
        socket(2, ("client", "at 2026-02-02 11:11:11"), ("server", "exact")),
    )
    play = opened(made)
    play.receive("at 2026-02-02 11:11:11")
    assert texts(play) == ["exact"]
    assert [played.tier for played in made.report().played] == ["exact"]


def test_the_loosest_of_its_messages_is_the_connection_s_tier_and_drift_is_listed_once() -> None:
    made = session(socket(1, ("client", "a"), ("client", "at 2026-01-01 10:00:00"), ("server", "ok")))
    play = opened(made)
    play.receive("a")
    play.receive("at 2027-01-01 11:00:00")
    assert texts(play) == ["ok"]
    report = made.report()
    assert [played.tier for played in report.played] == ["masked"]
    assert [(drift.recorded, drift.live) for drift in report.drifted] == [
        ("at 2026-01-01 10:00:00", "at 2027-01-01 11:00:00")
    ]


def test_an_answer_has_the_new_id_of_the_live_program() -> None:
    old, new = "0d9c2a52-7d1f-4a5e-9a37-6a1b2c3d4e5f", "7b1f6e0c-1111-4222-8333-944455566677"
    made = session(
        socket(
            1, ("client", {"result": f"started {old}"}), ("server", {"delta": old[:9]}), ("server", {"delta": old[9:]})
        )
    )
    play = opened(made)
    play.receive(dumped({"result": f"started {new}"}))
    assert "".join(orjson.loads(text)["delta"] for text in texts(play)) == new


@pytest.mark.parametrize(
    ("close", "ended", "said", "cut"),
    [
        (Close(1013, "later", "server"), Ended.COMPLETE, Close(1013, "later", "server"), False),
        (Close(1000, "", "client"), Ended.COMPLETE, None, False),
        (None, Ended.UPSTREAM_CLOSED, None, True),
        (None, Ended.CLIENT_CLOSED, None, False),
    ],
)
def test_the_end_of_the_connection_comes_last(close: Close | None, ended: Ended, said: Any, cut: bool) -> None:
    play = opened(session(socket(1, ("client", "a"), ("server", "1"), close=close, ended=ended)))
    assert (play.close, play.cut) == (None, False)
    play.receive("a")
    play.due()
    assert (play.close, play.cut) == (said, cut)


def test_an_unrecorded_message_is_a_miss_with_both_values_and_ends_the_playback() -> None:
    made = session(socket(1, ("client", "a"), ("client", "b"), ("server", "1")))
    play = opened(made)
    play.receive("a")
    play.receive("other")
    assert play.miss is not None
    assert "recorded  b" in play.miss.message
    assert "live      other" in play.miss.message
    play.receive("b")
    assert texts(play) == []
    assert made.misses == [play.miss]
    told = orjson.loads(miss_message(play.miss))
    assert (told["type"], told["status"], told["error"]["code"]) == ("error", 400, "wiretape_miss")


def test_a_message_after_the_recorded_ones_says_that_the_recording_ends_there() -> None:
    play = opened(session(socket(7, ("client", "a"))))
    play.receive("a")
    play.receive("more")
    assert play.miss is not None
    assert "x7 has no further message of the client" in play.miss.message


def test_an_unrecorded_connection_is_a_stray() -> None:
    made = session(socket(1, ("client", "a")))
    assert isinstance(made.open_socket(LiveRequest("GET", "https://api.example.com/other", SHAKE)), Stray)
