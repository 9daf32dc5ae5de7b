"""Law 1: chunking never changes the decoded call: whole, byte by byte, split anywhere, inside a character too."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st
from tests.support.wire import CHAT, DONE, GEMINI, MESSAGES, RESPONSES, answer, chunk, everything, frame, named, stream
from tests.support.wire_binary import ASKED
from tests.support.wire_binary import STREAMS as OTHERS

from wiretape.wire.sse import SseDecoder, SseEvent

CHAT_STREAM = [
    b": OPENROUTER PROCESSING\r\n\r\n",
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "思考 «…» 🙂"}),
    chunk({"content": "今天是 2026年02月28日"}).replace(b"\n", b"\r\n"),
    chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"城市":'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"成都"}'}}]}, "tool_calls").replace(b"\n", b"\r"),
    chunk(None, usage={"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}),
    DONE,
]
RESPONSES_STREAM = named(
    [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "model": "m"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "summary": []}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "日程 🙂"},
        {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "role": "assistant"}},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "产品评审会"},
        {"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 3}}},
    ]
)
MESSAGES_STREAM = named(
    [
        {
            "type": "message_start",
            "message": {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 3}},
        },
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "你好 🙂"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
)
GEMINI_CHUNKS = [
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "想 🙂", "thought": True}]}}], "responseId": "r"},
    {"candidates": [{"content": {"parts": [{"text": "产品[{"}]}}], "usageMetadata": {"promptTokenCount": 3}},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "willContinue": True}}]}}]},
    {
        "candidates": [
            {
                "content": {
                    "parts": [{"functionCall": {"partialArgs": [{"jsonPath": "$.城市[0]", "stringValue": "成都"}]}}]
                }
            }
        ]
    },
    {"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "c2ln"}]}, "finishReason": "STOP"}]},
]
GEMINI_STREAM = [frame(chunk) for chunk in GEMINI_CHUNKS]
GEMINI_LIST = [
    *((b"," if n else b"[") + json.dumps(chunk, ensure_ascii=False).encode() for n, chunk in enumerate(GEMINI_CHUNKS)),
    b"\n]",
]
STREAMS = [
    (GEMINI, GEMINI_STREAM),
    (GEMINI, GEMINI_LIST),
    (CHAT, CHAT_STREAM),
    (RESPONSES, RESPONSES_STREAM),
    (MESSAGES, MESSAGES_STREAM),
    *OTHERS,
]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """`data` in pieces, cut at these places."""
    marks = [0, *sorted(p % (len(data) + 1) for p in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(marks)]


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 10**6), max_size=40))
def test_a_stream_decodes_equally_for_every_split(case: tuple[str, list[bytes]], places: list[int]) -> None:
    url, frames = case
    asked = ASKED.get(url)
    expected = everything(answer(url, frames, request=asked))
    assert everything(answer(url, stream(cut(b"".join(frames), places)), request=asked)) == expected


def events_of(chunks: list[bytes]) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


@given(
    st.lists(st.sampled_from([b"\r", b"\n", b"data:", b"data: ", b"event: e", b"x", b":", "日".encode(), b" "])),
    st.lists(st.integers(0, 10**6), max_size=20),
)
def test_any_line_ends_split_anywhere_give_the_same_events(parts: list[bytes], places: list[int]) -> None:
    data = b"".join(parts)
    assert events_of(cut(data, places)) == events_of([data])
