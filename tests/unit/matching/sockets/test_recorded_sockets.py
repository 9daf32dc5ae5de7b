"""Messages with different cores never match, and only few pending messages are compared."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.replaying import session
from tests.support.sockets import create, events, message, socket, text

from wiretape.compare.difference import Tier
from wiretape.matching.session import ReplaySession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.sockets.recorded_sockets import RecordedSockets
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Headers
from wiretape.wire.registry import Registry

URL = "https://api.example.com/v1/responses"
LEAVES = st.sampled_from(
    [
        "a",
        "b",
        "at 12:30",
        "at 13:45",
        '{"x": 1}',
        '{"x":1.0}',
        "[redacted:key:1]",
        1,
        1.0,
        2,
        1772000000,
        1773000000,
        None,
    ]
)
NAMES = st.sampled_from(["text", "id", "call_id", "signature", "cache_control", "metadata", "agents", "duration_ms"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
MEMBERS = st.dictionaries(NAMES | st.sampled_from(["input", "user"]), VALUES, max_size=4)


def opened(made: ReplaySession) -> SocketPlay:
    play = made.open_socket(LiveRequest("GET", URL, Headers([("upgrade", "websocket")])))
    assert isinstance(play, SocketPlay)
    return play


def conversation(calls: int) -> list[Any]:
    said: list[Any] = []
    for n in range(calls):
        said += [create(f"question {n}"), *events(f"r{n}", message(f"answer {n}"))]
    return said


@given(MEMBERS, MEMBERS, st.data())
def test_messages_that_match_have_equal_cores(
    recorded: dict[str, Any], other: dict[str, Any], data: st.DataObject
) -> None:
    live = copy.deepcopy(recorded)
    for name in data.draw(st.lists(st.sampled_from([*other]), max_size=2)) if other else []:
        live[name] = other[name]
    said = [("client", {"type": "response.create", "model": "m", **recorded}), *events("r", message("ok"))]
    sockets = opened(session(socket(said), tier=Tier.MASKED))._sockets
    (one,) = sockets.recorded
    asked = {"type": "response.create", "model": "m", **live}
    if sockets.compare(one, 0, asked) is not None:
        assert sockets.may_match(one, 0, asked)


@pytest.mark.parametrize("tier", [Tier.MASKED, Tier.POSITION])
def test_few_of_many_pending_messages_are_compared(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    compare = RecordedSockets.compare

    def counted(self: RecordedSockets, recorded: Any, place: int, live: Any) -> Any:
        compared.append(place)
        return compare(self, recorded, place, live)

    monkeypatch.setattr(RecordedSockets, "compare", counted)
    made = session(socket(conversation(30)), tier=tier)
    play = opened(made)
    other = "another " if tier is Tier.POSITION else ""
    for n in range(30):
        play.receive(text(create(f"{other}question {n}")[1]))
        assert play.miss is None
        play.due()
    assert len(compared) <= 31


def test_a_connection_is_decoded_once_for_all_lines_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    made = session(socket(conversation(5)))
    play, decoded = opened(made), []
    calls_of = Registry.calls_of
    monkeypatch.setattr(Registry, "calls_of", lambda self, one, memo: decoded.append(one) or calls_of(self, one, memo))
    shown = []
    for n in range(5):
        play.receive(text(create(f"question {n}")[1]))
        play.due()
        shown += [made.call_of(answer) for answer in play.new_outcomes()]
    assert [call.number for call in shown] == [1, 2, 3, 4, 5]
    assert [call.response.messages[0].blocks[0].text for call in shown] == [f"answer {n}" for n in range(5)]
    assert len(decoded) == 1
