"""Law 2: any bytes decode to blocks, errors or unknown blocks, without a crash or a loss."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.test_law_1_chunking_decode import CHAT_STREAM, GEMINI_STREAM, MESSAGES_STREAM, RESPONSES_STREAM
from tests.support.wire import CHAT, GEMINI, MESSAGES, RESPONSES, frame, stream
from tests.support.wire_binary import STREAMS as OTHERS
from tests.support.wire_binary import binary, chunk, event

from wiretape.model.call import Unknown
from wiretape.model.http import Body, BytesBody, Ended, Exchange, Headers, JsonBody, Request, Response, TextBody
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry, built_in

KINDS = [CHAT, RESPONSES, MESSAGES, GEMINI, *dict(OTHERS)]
URLS = st.sampled_from([*KINDS, "http://127.0.0.1:1/x", "http://[bad"])
VOCABULARY = """
    role content text type tool_calls function name arguments id index delta message choices usage error status output
    input messages model item items response output_index content_index summary reasoning_content reasoning_details
    content_block thinking signature stop_reason finish_reason prompt_tokens completion_tokens total_tokens code tools
    prompt_tokens_details cached_tokens custom system instructions call_id encrypted_content action queries results
    iterations message_start message_delta content_block_start content_block_delta content_block_stop text_delta
    input_json_delta partial_json response.completed response.output_item.done response.output_text.delta citation
    candidates content parts contents thought thoughtSignature functionCall functionResponse args partialArgs jsonPath
    stringValue willContinue executableCode codeExecutionResult toolCall toolResponse inlineData promptFeedback
    usageMetadata blockReason finishReason systemInstruction functionDeclarations response request $.a[0] steps
    output stopReason toolUse toolUseId toolResult reasoningContent reasoningText redactedContent citationsContent json
    messageStart contentBlockStart contentBlockDelta contentBlockIndex start messageStop metadata cachePoint
    guardContent bytes inputTokens done done_reason created_at tool_name images prompt eval_count prompt_eval_count
    context tool_plan message-start content-start content-delta tool-call-start message-end embeddings meta billed_units
    results texts
    generation outputText outputs generations completions data embedding documents query toolConfig amazon
    function_call reasoning shell_call_output tool_result tool_use tool_use_id user assistant tool developer -1 null
"""
WORDS = VOCABULARY.split()
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=5),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=8)
GOOD = {CHAT: CHAT_STREAM, RESPONSES: RESPONSES_STREAM, MESSAGES: MESSAGES_STREAM, GEMINI: GEMINI_STREAM}
GOOD.update(OTHERS)


def decode_all(url: str, asked: Body | None, answered: Body | None, status: int = 200) -> None:
    """Every format decodes it, and keeps counts of blocks and paths equal."""
    one = Exchange(
        1, 0, Request("POST", url, Headers(), asked), Response(status, Headers(), 1, answered), Ended.COMPLETE
    )
    registry = Registry(built_in())
    registry.recognise(one)
    assert registry.problems == []
    for form in registry.formats:
        call = form.decode(one, Memo())
        assert call.response is not None
        for message in (*call.request.messages, *call.response.messages):
            assert len(message.blocks) == len(message.block_paths)
        for n in range(len(call.request.messages)):
            assert isinstance(call.request.path(n), str)


@given(URLS, st.binary(max_size=200), st.binary(max_size=200), st.sampled_from([200, 400, 529]))
def test_any_bytes(url: str, asked: bytes, answered: bytes, status: int) -> None:
    decode_all(url, BytesBody(asked), BytesBody(answered), status)


@given(URLS, st.text(max_size=100), st.text(max_size=100))
def test_any_text(url: str, asked: str, answered: str) -> None:
    decode_all(url, TextBody(asked), TextBody("{" + answered))


@settings(max_examples=150)
@given(URLS, OBJECTS, OBJECTS)
def test_any_json(url: str, asked: Any, answered: Any) -> None:
    decode_all(url, JsonBody(asked), JsonBody(answered))


@settings(max_examples=150)
@given(URLS, st.lists(OBJECTS, max_size=5), st.sampled_from(KINDS), st.integers(0, 10))
def test_any_events_among_good_ones(url: str, events: list[Any], kind: str, place: int) -> None:
    strange = [frame(json.dumps(e)) for e in events]
    good = GOOD[kind]
    decode_all(url, JsonBody({}), stream([*good[:place], *strange, *good[place:]]))


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from([*WORDS, "chunk"]), VALUES, st.booleans()), max_size=6))
def test_any_events_in_a_binary_stream(said: list[tuple[str, Any, bool]]) -> None:
    frames = [chunk({name: value}) if wrapped else event(name, value) for name, value, wrapped in said]
    for url in dict(OTHERS):
        decode_all(url, None, binary(frames))


@settings(max_examples=100)
@given(st.sampled_from(KINDS), st.lists(st.tuples(st.integers(0, 3000), st.binary(max_size=4))))
def test_damaged_streams(url: str, edits: list[tuple[int, bytes]]) -> None:
    data = bytearray(b"".join(GOOD[url]))
    for place, piece in edits:
        at = place % len(data)
        data[at : at + len(piece)] = piece
    decode_all(url, None, stream([bytes(data)]))


@pytest.mark.parametrize("url", [CHAT, RESPONSES, MESSAGES])
def test_deep_nesting(url: str) -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    decode_all(
        url, JsonBody({"messages": [{"role": "user", "content": deep}], "input": deep}), JsonBody({"content": deep})
    )
    decode_all(url, TextBody("[" * 5000), TextBody("[" * 5000))
    nested = '{"a":' * 900 + "1" + "}" * 900
    events = [frame('{"usage":' + nested + "}"), frame('{"usage":' + nested + "}")]
    events += [frame('{"choices":[{"delta":{"x":' + nested + "}}]}")]
    decode_all(url, TextBody('{"messages":[{"role":"user","x":' + nested + "}]}"), stream(events))


@given(st.sampled_from([CHAT, RESPONSES, MESSAGES]), st.sampled_from(["text", "thing"]), VALUES)
def test_blocks_of_unknown_types_are_kept_whole(url: str, kind: str, value: Any) -> None:
    part = {"type": f"new_{kind}", "payload": value}
    request = {"messages": [{"role": "user", "content": [part]}], "input": [{"role": "user", "content": [part]}]}
    for form in built_in():
        if form.name not in ("openai.chat", "openai.responses", "anthropic.messages"):
            continue  # these tell their parts apart otherwise
        decoded = form.decode_request(Request("POST", url, Headers(), JsonBody(request)), Memo())
        found = [b for m in decoded.messages for b in m.blocks]
        assert found == [Unknown(f"new_{kind}", part)] or value != value
        assert found[0].raw is part
