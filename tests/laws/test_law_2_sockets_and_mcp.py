"""Laws 1 and 2 for WebSocket messages and JSON-RPC: every message decodes without a crash."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sockets import REGISTRY, Said, calls_of, create, events, function_call, message, socket
from tests.support.wire import SSE, exchange, frame, stream

from wiretape.model.http import Ended, Exchange, JsonBody
from wiretape.runs.run import build_run
from wiretape.wire.mcp.traffic import describe_mcp, served_tool_calls

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TURN: list[Said] = [
    create("Go.", stream_id="a"),
    *events("r1", message("好的 🙂"), function_call("f", "c1"), stream_id="a"),
    create("On.", previous_response_id="r1", stream_id="a"),
    *events("r2", message("Done."), stream_id="a"),
]
# fmt: off
NAMES = st.sampled_from(
    [
        "response.create", "response.steer", "response.created", "response.completed",
        "response.output_item.done", "response.output_text.delta", "response.steer.failed",
        "response.failed", "error", "session.update", "response.processed",
    ]
)
# fmt: on
# fmt: off
MEMBERS = st.sampled_from(
    [
        "response", "input", "previous_response_id", "stream_id", "item", "delta", "output_index",
        "steer", "error", "status", "client_metadata", "tools", "instructions", "generate",
        "prompt_cache_options", "model",
    ]
)
# fmt: on
FRAME = st.builds(lambda name, rest: {**rest, "type": name}, NAMES, st.dictionaries(MEMBERS, JSON, max_size=4))
STRANGE: st.SearchStrategy[Said] = st.tuples(
    st.sampled_from(["client", "server"]), FRAME | JSON | st.text() | st.binary()
)


@given(st.lists(STRANGE, max_size=12), st.sampled_from([None, *Ended]))
@settings(deadline=None)
def test_any_messages_decode(said: list[Said], ended: Ended | None) -> None:
    calls = calls_of(socket([create("Go."), *said], ended=ended))
    assert calls
    assert not REGISTRY.problems
    assert len({call.part for call in calls}) == len(calls)
    frames = [frame for call in calls for frame in call.frames]
    assert len(frames) == len(set(frames))
    build_run(calls)


@given(st.lists(STRANGE, max_size=8), st.integers(0, len(TURN)))
@settings(deadline=None)
def test_strange_messages_anywhere_take_nothing_from_a_following_turn(said: list[Said], place: int) -> None:
    other = [(who, value) for who, value in said if isinstance(value, bytes)]
    calls = calls_of(socket([*TURN[:place], *other, *TURN[place:]]))
    assert [call.response and call.response.id for call in calls] == ["r1", "r2"]
    assert all(call.response is not None and call.response.complete for call in calls)


@given(st.integers(1, len(TURN)))
def test_an_open_socket_decodes_as_it_does_after_its_end(cut: int) -> None:
    whole = calls_of(socket(TURN))
    for early, late in zip(calls_of(socket(TURN[:cut], ended=None)), whole, strict=False):
        assert early.frames == late.frames[: len(early.frames)]
        if early.ended is not None:
            assert early.response is not None
            assert late.response is not None
            assert early.response.usage == late.response.usage
            assert [m.blocks for m in early.response.messages] == [m.blocks for m in late.response.messages]


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=8), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_lanes_never_mix_however_their_events_are_woven(lanes: list[str], random: Any) -> None:
    asked = [create(str(n), stream_id=lane) for n, lane in enumerate(lanes)]
    queues: dict[str, list[Said]] = {lane: [] for lane in lanes}
    for n, lane in enumerate(lanes):
        queues[lane] += events(f"r{n}", message(f"answer {n}"), stream_id=lane)
    woven: list[Said] = []
    while any(queues.values()):
        lane = random.choice([name for name, queue in queues.items() if queue])
        woven.append(queues[lane].pop(0))
    ids = [call.response and call.response.id for call in calls_of(socket([*asked, *woven]))]
    assert ids == [f"r{n}" for n in range(len(lanes))]


RPC = st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]), JSON, max_size=5)
PARAMS = st.dictionaries(st.sampled_from(["name", "arguments", "inputResponses", "uri"]), JSON, max_size=3)
ASKED = RPC.map(lambda m: {**m, "jsonrpc": "2.0"}) | st.builds(
    lambda params, call_id: {"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params}, PARAMS, JSON
)
RESULT = st.dictionaries(st.sampled_from(["content", "isError", "resultType", "structuredContent"]), JSON, max_size=3)
ANSWER = RPC | st.builds(lambda r, call_id: {"jsonrpc": "2.0", "id": call_id, "result": r}, RESULT, JSON)


@given(st.lists(ASKED, min_size=1, max_size=3), st.lists(ANSWER, max_size=3), st.booleans())
@settings(deadline=None)
def test_any_json_rpc_is_read(asked: list[Any], answers: list[Any], batch: bool) -> None:
    one = exchange("http://127.0.0.1/mcp", JsonBody(answers), request=asked if batch else asked[0])
    wanted = asked if batch else asked[:1]
    served = served_tool_calls([one])
    assert len(served) <= len(wanted)
    describe_mcp(one)
    build_run([], (), served)


@given(st.binary(max_size=200))
def test_any_bytes_of_a_channel_are_read(data: bytes) -> None:
    one = exchange("http://127.0.0.1/sse", stream([b"event: endpoint\n", data]), headers=SSE, method="GET", ended=None)
    words = describe_mcp(one)
    assert words is not None
    assert served_tool_calls([one]) == []


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "f", "arguments": {"城市": "成都"}}}
REPLY = frame({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "晴 🙂"}]}}, "message")


@given(st.lists(st.integers(0, len(REPLY)), max_size=10))
def test_an_answer_is_the_same_for_every_split(places: list[int]) -> None:
    marks = [0, *sorted(places), len(REPLY)]
    pieces = [REPLY[a:b] for a, b in itertools.pairwise(marks)]
    one: Exchange = exchange("http://127.0.0.1/mcp", stream(pieces), request=CALL, headers=SSE)
    assert [call.text for call in served_tool_calls([one])] == ["晴 🙂"]
    assert [call.text for call in served_tool_calls([replace(one, ended=None, ended_at=None)])] == ["晴 🙂"]
