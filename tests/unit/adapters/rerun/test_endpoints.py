"""URLs under another base URL, and the variable of the API key."""

from __future__ import annotations

import pytest

from wiretape.adapters.rerun.endpoints import endpoint_of
from wiretape.errors import UsageError


@pytest.mark.parametrize(
    ("name", "url", "base", "there"),
    [
        ("openai.chat", "https://api.deepseek.com/chat/completions", "http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("openai.chat", "https://openrouter.ai/api/v1/chat/completions", "http://h:1", "http://h:1/chat/completions"),
        (
            "openai.responses",
            "https://api.openai.com/v1/responses?x=1",
            "http://h:1/v1/",
            "http://h:1/v1/responses?x=1",
        ),
        ("anthropic.messages", "https://api.anthropic.com/v1/messages", "http://h:1", "http://h:1/v1/messages"),
        ("anthropic.messages", "https://api.anthropic.com/v1/messages", "http://h:1/v1", "http://h:1/v1/messages"),
        (
            "gemini.generate",
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
            "http://h:1",
            "http://h:1/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        (
            "gemini.generate",
            "https://cloudcode-pa.googleapis.com/v1internal:generateContent",
            "http://h:1",
            "http://h:1/v1internal:generateContent",
        ),
        (
            "bedrock.converse",
            "https://bedrock-runtime.x.amazonaws.com/model/a%3A0/converse",
            "http://h:1",
            "http://h:1/model/a%3A0/converse",
        ),
        (
            "bedrock.invoke",
            "https://bedrock-runtime.x.amazonaws.com/model/a%3A0/invoke-with-response-stream",
            "http://h:1/aws",
            "http://h:1/aws/model/a%3A0/invoke-with-response-stream",
        ),
        (
            "gemini.interactions",
            "https://generativelanguage.googleapis.com/v1beta/interactions",
            "http://h:1/v1beta",
            "http://h:1/v1beta/interactions",
        ),
        ("ollama.chat", "http://localhost:11434/api/chat", "http://h:1", "http://h:1/api/chat"),
        ("cohere.chat", "https://api.cohere.com/v2/chat", "http://h:1", "http://h:1/v2/chat"),
    ],
)
def test_endpoints_are_relative_to_the_base_url_of_the_sdks(name: str, url: str, base: str, there: str) -> None:
    assert endpoint_of(name, url).under(base, url) == there


def test_known_hosts_have_their_own_key_variable() -> None:
    chat = endpoint_of("openai.chat", "")
    assert chat.key_variable("api.deepseek.com") == "DEEPSEEK_API_KEY"
    assert chat.key_variable("127.0.0.1") == "OPENAI_API_KEY"
    assert endpoint_of("anthropic.messages", "").key_headers("k") == [("x-api-key", "k")]


def test_an_unknown_endpoint_names_its_format() -> None:
    with pytest.raises(UsageError, match=r"acme\.chat"):
        endpoint_of("acme.chat", "https://acme.example/chat")
