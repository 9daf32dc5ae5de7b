"""Side calls: embeddings, rerank, moderation, token counts, decisions, legacy completions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import (
    DONE,
    answer,
    blocks,
    check_chunking,
    check_paths,
    counts,
    decode,
    exchange,
    frame,
    said,
    stream,
)
from tests.support.wire_binary import ASKED, COMPLETIONS, COMPLETIONS_FRAMES

from wiretape.model.call import Media, Unknown
from wiretape.model.http import Ended, JsonBody
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode as decode_all

HOST = "https://api.example.com"
VECTORS = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.1]}], "model": "m-1"}
PREDICTED = {"predictions": [{"embeddings": {"statistics": {"token_count": n}, "values": [0.1]}} for n in (4, 5)]}
CASES: list[tuple[str, str, dict[str, Any], dict[str, Any], list[str], int | None]] = [
    (
        "/v1/embeddings",
        "embedding",
        {"model": "m", "input": ["one", "two"]},
        {**VECTORS, "usage": {"prompt_tokens": 12, "total_tokens": 12}},
        ["one", "two"],
        12,
    ),
    (
        "/v1/embeddings",
        "embedding",
        {"model": "m", "input": "one"},
        {**VECTORS, "usage": {"total_tokens": 9}},
        ["one"],
        9,
    ),
    (
        "/v2/embed",
        "embedding",
        {"model": "m", "texts": ["one"], "input_type": "search_query"},
        {"id": "e", "embeddings": {"float": [[0.1]]}, "meta": {"billed_units": {"input_tokens": 10}}},
        ["one"],
        10,
    ),
    (
        "/api/embed",
        "embedding",
        {"model": "m", "input": "one"},
        {"model": "m", "embeddings": [[0.1]], "prompt_eval_count": 8},
        ["one"],
        8,
    ),
    (
        "/v1beta/models/gemini-embedding-2:batchEmbedContents",
        "embedding",
        {"requests": [{"model": "models/g", "content": {"parts": [{"text": "one"}]}}]},
        {"embeddings": [{"values": [0.1]}], "usageMetadata": {"promptTokenCount": 3}},
        ["one"],
        3,
    ),
    (
        "/v1beta/models/gemini-embedding-2:embedContent",
        "embedding",
        {"content": {"parts": [{"text": "one"}]}},
        {"embedding": {"values": [0.1]}},
        ["one"],
        None,
    ),
    (
        "/v1/projects/p/publishers/google/models/gemini-embedding-001:predict",
        "embedding",
        {"instances": [{"content": "one", "task_type": "RETRIEVAL_QUERY"}]},
        PREDICTED,
        ["one"],
        9,
    ),
    (
        "/v2/rerank",
        "rerank",
        {"model": "m", "query": "q", "documents": ["one", {"text": "two"}]},
        {"id": "r", "results": [{"index": 0, "relevance_score": 0.1}], "meta": {"billed_units": {"search_units": 1}}},
        ["q", "one", "two"],
        None,
    ),
    (
        "/v1/rerank",
        "rerank",
        {"model": "m", "query": "q", "documents": ["one"]},
        {"object": "rerank", "results": [], "usage": {"prompt_tokens": 2966, "completion_tokens": 0}},
        ["q", "one"],
        2966,
    ),
    (
        "/v1/moderations",
        "moderation",
        {"model": "m", "input": "one"},
        {"id": "modr", "model": "m-1", "results": [{"flagged": False}]},
        ["one"],
        None,
    ),
    (
        "/v1/decisions",
        "decision",
        {"model": "m", "input": "one", "questions": ["Is it?"]},
        {"answers": [True], "usage": {"input_tokens": 7, "output_tokens": 1}},
        ["one", "Is it?"],
        7,
    ),
    ("/v1/tokenize", "token_count", {"model": "m", "text": "one"}, {"tokens": [1, 2]}, ["one"], None),
]


@pytest.mark.parametrize(("path", "kind", "request_body", "body", "texts", "tokens"), CASES)
def test_side_calls(path: str, kind: str, request_body: Any, body: Any, texts: list[str], tokens: int | None) -> None:
    call = decode(exchange(HOST + path, JsonBody(body), request=request_body))
    assert call.kind == kind
    assert blocks(call.request.messages) == [("text", text) for text in texts]
    assert check_paths(call, request_body) == len(texts)
    response = call.response
    assert response is not None
    kept = response.messages[0].blocks[0]
    assert kept == Media(kind, body)
    assert call.request.model
    if tokens is None:
        assert response.usage is None
    else:
        assert response.usage is not None
        assert response.usage.input == tokens


def test_inputs_other_than_text_are_kept() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:…"}}
    call = decode(exchange(f"{HOST}/v1/embeddings", None, request={"model": "m", "input": [image, "one"]}))
    assert blocks(call.request.messages) == [("media", "embedding_input"), ("text", "one")]
    tokens = decode(exchange(f"{HOST}/v1/embeddings", None, request={"model": "m", "input": [5, 6]}))
    assert tokens.request.messages[0].blocks == (Media("embedding_input", {"value": [5, 6]}),)
    assert tokens.request.path(0) == "input"


def test_errors() -> None:
    body = {"error": {"message": "No such model.", "type": "invalid_request_error", "code": "model_not_found"}}
    response = answer(f"{HOST}/v1/embeddings", body, status=404, request={"model": "m", "input": "x"})
    assert response.error is not None
    assert (response.error.code, response.messages, response.usage) == ("model_not_found", (), None)
    page = answer(f"{HOST}/v1/embeddings", "<html>busy</html>", status=503, request={"model": "m", "input": "x"})
    assert page.error is not None
    assert (page.error.status, page.error.retryable) == (503, True)


def test_side_calls_are_counted_separately_and_never_turns() -> None:
    chat = {"model": "m", "messages": [{"role": "user", "content": "one"}]}
    said_hello = {"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}
    cases = [
        exchange(HOST + path, JsonBody(body), request=asked, number=n, at=10 * n)
        for n, (path, _, asked, body, _, _) in enumerate(CASES, 1)
    ]
    cases.append(exchange(COMPLETIONS, JsonBody({"choices": []}), request=ASKED[COMPLETIONS], number=90, at=900))
    url = f"{HOST}/v1/chat/completions"
    cases.append(exchange(url, JsonBody(said_hello), request=chat, number=91, at=910))
    run = build_run(decode_all(cases))
    assert [step.cause.kind for step in run.steps] == ["side_call"] * (len(CASES) + 1) + ["turn_start"]
    assert len(run.turns) == 1


# -- legacy completions -------------------------------------------------------------------------------------------


def test_legacy_completions() -> None:
    response = check_chunking(COMPLETIONS, COMPLETIONS_FRAMES, request=ASKED[COMPLETIONS])
    assert (said(response), response.finish, response.id) == ([("text", "你好")], "stop", "cmpl-1")
    assert (counts(response), response.complete, response.first_token_at) == ((2, None, None, 3, None), True, 100)
    choices = [{"index": 0, "text": "你好", "finish_reason": "length"}, {"index": 1, "text": "您好"}]
    plain = answer(COMPLETIONS, {"id": "c", "choices": choices}, request=ASKED[COMPLETIONS])
    assert (said(plain), plain.finish) == ([("text", "你好"), ("text", "您好")], "length")
    assert [m.extra for m in plain.messages] == [(), (("choice", 1),)]


def test_a_truncated_completion() -> None:
    response = answer(COMPLETIONS, COMPLETIONS_FRAMES[:1], request=ASKED[COMPLETIONS], ended=Ended.UPSTREAM_CLOSED)
    assert (said(response), response.complete, response.finish) == ([("text", "你")], False, None)


def test_prompts() -> None:
    request = {"model": "m", "prompt": ["one", "two"], "suffix": ".", "max_tokens": 3}
    call = decode(exchange(COMPLETIONS, None, request=request))
    assert (call.kind, blocks(call.request.messages)) == (
        "completion",
        [("text", "one"), ("text", "two"), ("text", ".")],
    )
    assert (check_paths(call, request), call.request.settings) == (3, {"max_tokens": 3})
    tokens = decode(exchange(COMPLETIONS, None, request={"model": "m", "prompt": [1, 2]}))
    assert tokens.request.messages[0].blocks == (Unknown("prompt", [1, 2]),)


def test_fill_in_the_middle_answers_like_a_chat() -> None:
    url = f"{HOST}/v1/fim/completions"
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
    asked = {"model": "m", "prompt": "a", "suffix": "b"}
    assert said(answer(url, body, request=asked)) == [("text", "x")]
    frames = [frame({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}), DONE]
    assert said(check_chunking(url, frames, request=asked)) == [("text", "x")]


def test_an_error_in_a_stream_of_completions() -> None:
    failed = frame({"error": {"message": "No more.", "type": "server_error"}})
    response = answer(COMPLETIONS, [COMPLETIONS_FRAMES[0], failed], request=ASKED[COMPLETIONS])
    assert response.error is not None
    assert (response.error.message, response.error.phase, response.complete) == ("No more.", "mid_stream", False)


@pytest.mark.parametrize(
    ("body", "form", "kind"),
    [
        (JsonBody(VECTORS), "embeddings", "embedding"),
        (JsonBody({"object": "text_completion", "choices": [{"text": "Hi"}]}), "openai.completions", "completion"),
        (stream(COMPLETIONS_FRAMES), "openai.completions", "completion"),
        (JsonBody({"object": "list", "data": [{"id": "m-1", "object": "model"}]}), None, None),
        (JsonBody({"object": "list", "data": []}), None, None),
    ],
)
def test_the_response_shows_the_format_if_the_request_does_not(body: Any, form: str | None, kind: str | None) -> None:
    calls = decode_all([exchange(f"{HOST}/proxy", body, request={"x": 1})])
    assert [(call.format, call.kind) for call in calls] == ([(form, kind)] if form else [])
