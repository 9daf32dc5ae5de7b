"""Recognition of an exchange's format: by path, then body, then response; never by the host."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import DONE, REGISTRY, chunk, exchange, named, stream

from wiretape.model.http import Body, Exchange, Headers, JsonBody, Request, TextBody
from wiretape.wire.base import Claim
from wiretape.wire.recognition import host_dialect, path_of
from wiretape.wire.registry import Registry, built_in

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
INPUT = {"model": "m", "input": "Hi"}
ANTHROPIC = {**CHAT, "max_tokens": 1, "system": "You help."}


def name_of(
    url: str, body: Any = None, headers: list[tuple[str, str]] | None = None, method: str = "POST"
) -> str | None:
    shaped = body if body is None or isinstance(body, TextBody) else JsonBody(body)
    found = REGISTRY.recognise_request(Request(method, url, Headers(headers or []), shaped))
    return found.name if found else None


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/chat/completions",
        "/v1/v1/chat/completions",
        "/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
        "/api/v3/bots/chat/completions",
        "/api/paas/v4/chat/completions/",
        "/v1beta/openai/chat/completions",
        "/client/v4/accounts/a/ai/v1/chat/completions",
        "/engines/m/chat/completions",
        "/together/v1/chat/completions",
    ],
)
def test_chat_paths(path: str) -> None:
    assert name_of(f"https://any.example.com{path}", CHAT) == "openai.chat"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/responses",
        "/responses",
        "/backend-api/codex/responses",
        "/openai/responses?api-version=1",
        "/v1/responses/compact",
    ],
)
def test_responses_paths(path: str) -> None:
    assert name_of(f"https://any.example.com{path}", INPUT) == "openai.responses"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/messages",
        "/v1/messages?beta=true",
        "/anthropic/v1/messages",
        "/api/anthropic/v1/messages",
        "/v1/messages/count_tokens",
    ],
)
def test_messages_paths(path: str) -> None:
    assert name_of(f"https://any.example.com{path}", {**CHAT, "max_tokens": 1}) == "anthropic.messages"


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://api.example.com/v1/threads/thread_1/messages", {"role": "user", "content": "Hi"}),
        ("https://api.example.com/v1/threads/thread_1/messages", CHAT),
        ("https://api.example.com/v1/chat/completions/c_1/messages", None),
        ("https://mcp.example.com/messages?sessionId=1", {"jsonrpc": "2.0", "method": "tools/call", "id": 1}),
        ("https://mcp.example.com/v1/messages", {"jsonrpc": "2.0", "method": "tools/call", "id": 1}),
        ("https://chat.example.com/channels/7/messages", {"text": "Hi"}),
        ("https://forms.example.com/responses", {"answers": [1]}),
        ("https://api.example.com/v1/messages/batches", {"requests": []}),
        ("https://api.example.com/v1beta/cachedContents", {"model": "m", "contents": [{"parts": [{"text": "Hi"}]}]}),
        ("https://api.example.com/models/m:batchGenerateContent", {"batch": {}}),
        ("https://web.example.com/api/chat", {"id": "1", "messages": [{"role": "user", "parts": []}]}),
        ("https://api.example.com/v1/embeddings", None),
        ("https://chain.example.com/agent/invoke", {"input": {"question": "Hi"}}),
        ("https://search.example.com/rerank", {"query": "x"}),
        ("https://ci.example.com/complete", {"job": 1}),
        ("https://docs.example.com/x", {"contents": [{"title": "Hi"}]}),
        ("https://api.example.com/track", {"model": "m", "messages": ["hello"]}),
        ("https://api.example.com/track", {"events": [{"messages": 1}]}),
    ],
)
def test_other_requests_are_not_recognized(url: str, body: Any) -> None:
    assert name_of(url, body) is None


CONVERSE = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/v1/embeddings", {"model": "m", "input": ["Hi"]}, "embeddings"),
        ("/v2/embed", {"model": "m", "texts": ["Hi"], "input_type": "search_query"}, "embeddings"),
        ("/api/embed", {"model": "m", "input": "Hi"}, "embeddings"),
        ("/v1beta/models/m:embedContent", {"content": {"parts": [{"text": "Hi"}]}}, "gemini.embedContent"),
        ("/v1/models/gemini-embedding-001:predict", {"instances": [{"content": "Hi"}]}, "gemini.embedContent"),
        ("/v1/rerank", {"query": "x", "documents": []}, "rerank"),
        ("/v1/moderations", INPUT, "moderations"),
        ("/v1/tokenize", {"model": "m", "text": "Hi"}, "tokenize"),
        ("/v1/decisions", {"questions": [], "input": "Hi"}, "decisions"),
        ("/v1/completions", {"model": "m", "prompt": "Hi"}, "openai.completions"),
        ("/v1/fim/completions", {"model": "m", "prompt": "Hi", "suffix": "."}, "openai.completions"),
        ("/api/chat", CHAT, "ollama.chat"),
        ("/api/chat", {"model": "m"}, "ollama.chat"),
        ("/api/generate", {"model": "m", "prompt": "Hi"}, "ollama.generate"),
        ("/v2/chat", CHAT, "cohere.chat"),
        ("/model/us.anthropic.x%3A0/converse", CONVERSE, "bedrock.converse"),
        ("/model/arn%3Aaws%3Abedrock%3Aprofile%2Fx/converse-stream", None, "bedrock.converse"),
        ("/model/x/count-tokens", {"input": {"converse": CONVERSE}}, "bedrock.converse"),
        ("/model/x/count-tokens", {"input": {"invokeModel": {"body": "e30="}}}, "bedrock.invoke"),
        ("/model/x/invoke", {**CHAT, "anthropic_version": "bedrock-2023-05-31"}, "bedrock.invoke"),
        ("/model/x/invoke-with-response-stream", None, "bedrock.invoke"),
        (
            "/v1/projects/p/publishers/anthropic/models/m:rawPredict",
            {**CHAT, "anthropic_version": "v"},
            "anthropic.messages",
        ),
    ],
)
def test_paths_of_the_other_formats(path: str, body: Any, expected: str) -> None:
    assert name_of(f"https://any.example.com{path}", body) == expected


def test_types_that_are_not_strings_are_ignored() -> None:
    registry = Registry(built_in())
    for body in ({"model": "m", "input": [{"type": {}}]}, {"messages": [{"role": "user", "content": [{"type": []}]}]}):
        registry.recognise_request(Request("POST", "https://any.example.com/x", Headers(), JsonBody(body)))
    assert registry.problems == []


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "HEAD"])
def test_only_a_post_is_a_model_call(method: str) -> None:
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages"):
        assert name_of(f"https://api.example.com{path}", CHAT, method=method) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (CHAT, "openai.chat"),
        ({"messages": CHAT["messages"], "model_meta": {"name": "m"}}, "openai.chat"),
        (ANTHROPIC, "anthropic.messages"),
        ({**CHAT, "tools": [{"name": "f", "input_schema": {}}]}, "anthropic.messages"),
        ({**CHAT, "anthropic_version": "bedrock-2023-05-31"}, "anthropic.messages"),
        (
            {**CHAT, "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}]},
            "anthropic.messages",
        ),
        ({**INPUT, "instructions": "You help."}, "openai.responses"),
        ({"model": "m", "input": [{"role": "user", "content": "Hi"}]}, "openai.responses"),
        ({"model": "m", "input": [{"type": "function_call_output", "call_id": "c", "output": ""}]}, "openai.responses"),
        ({"type": "response.create", "model": "m", "input": []}, "openai.responses"),
        ({**CHAT, "options": {"num_ctx": 1}}, "ollama.chat"),
        ({"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}, "bedrock.converse"),
        (INPUT, None),
    ],
)
def test_the_body_decides_if_the_path_is_unknown(body: Any, expected: str | None) -> None:
    assert name_of("https://gateway.example.com/router/v2/llm", body) == expected


def test_a_header_counts_as_well() -> None:
    headers = [("anthropic-version", "2023-06-01")]
    assert name_of("https://gateway.example.com/llm", CHAT, headers) == "anthropic.messages"


def test_a_body_stored_as_text_is_recognized() -> None:
    text = TextBody('  {"model":"m","messages":[{"role":"user","content":"\\ud800"}],"seed":NaN}')
    assert name_of("https://gateway.example.com/llm", text) == "openai.chat"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (JsonBody({"object": "chat.completion", "choices": []}), "openai.chat"),
        (stream([chunk({"content": "a"}), DONE]), "openai.chat"),
        (JsonBody({"object": "response", "output": []}), "openai.responses"),
        (stream(named([{"type": "response.created", "response": {}}])), "openai.responses"),
        (JsonBody({"type": "message", "stop_reason": "end_turn", "content": []}), "anthropic.messages"),
        (stream(named([{"type": "message_start", "message": {}}])), "anthropic.messages"),
        (stream(named([*[{"type": "ping"}] * 20, {"type": "message_start", "message": {}}])), "anthropic.messages"),
        (JsonBody({"object": "list", "data": [{"object": "embedding"}]}), "embeddings"),
        (JsonBody({"object": "list", "data": [{"object": "model"}]}), None),
        (JsonBody({"object": "text_completion", "choices": [{"text": "Hi"}]}), "openai.completions"),
        (TextBody("ok"), None),
    ],
)
def test_the_response_decides_if_the_request_is_unknown(answer: Body, expected: str | None) -> None:
    one = exchange("https://gateway.example.com/x", answer, request={"prompt": "Hi"})
    found = REGISTRY.recognise(one)
    assert (found.name if found else None) == expected


def test_an_exchange_without_a_response_is_recognized_by_its_request() -> None:
    assert REGISTRY.recognise(Exchange(1, 0, Request("POST", "https://x.example.com/x", Headers()))) is None


def test_the_host_does_not_decide() -> None:
    for host in ("api.anthropic.com", "api.deepseek.com", "openrouter.ai"):
        assert name_of(f"https://{host}/v1/chat/completions", CHAT) == "openai.chat"
        assert name_of(f"https://{host}/v1/messages", ANTHROPIC) == "anthropic.messages"
        assert name_of(f"https://{host}/v1/responses", INPUT) == "openai.responses"


def test_bids() -> None:
    chat = REGISTRY.named("openai.chat")
    assert chat is not None
    url = "https://x.example.com/v1/chat/completions"
    assert chat.claims(Request("POST", url, Headers(), JsonBody(CHAT))) is Claim.CERTAIN
    assert chat.claims(Request("POST", url, Headers(), TextBody("?"))) is Claim.PATH
    assert chat.claims(Request("POST", "https://x.example.com/", Headers(), JsonBody(CHAT))) is Claim.BODY


def test_the_host_or_the_route_shows_the_dialect() -> None:
    assert host_dialect("https://api.deepseek.com/chat/completions") == "deepseek"
    assert host_dialect("http://127.0.0.1:8080/openrouter.ai/api/v1/chat/completions") == "openrouter"
    assert host_dialect("http://127.0.0.1:8080/v1/chat/completions") is None
    assert host_dialect("http://[bad") is None


def test_paths() -> None:
    assert path_of("https://h/a/b/?q=1") == "/a/b"
    assert path_of("https://h/model/us.anthropic%3A0/invoke") == "/model/us.anthropic:0/invoke"
