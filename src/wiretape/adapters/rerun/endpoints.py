"""Where each wire format's endpoint stands under a base URL, and how it is told the API key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from wiretape.errors import UsageError

# Hosts whose key has a variable of its own, whatever format they speak.
_KEYS_OF_HOSTS = {
    "deepseek.com": "DEEPSEEK_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
    "groq.com": "GROQ_API_KEY",
    "mistral.ai": "MISTRAL_API_KEY",
    "x.ai": "XAI_API_KEY",
    "together.xyz": "TOGETHER_API_KEY",
    "moonshot.cn": "MOONSHOT_API_KEY",
    "moonshot.ai": "MOONSHOT_API_KEY",
    "dashscope.aliyuncs.com": "DASHSCOPE_API_KEY",
    "cerebras.ai": "CEREBRAS_API_KEY",
    "fireworks.ai": "FIREWORKS_API_KEY",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A format's endpoint. `tail`: what of a recorded URL's path comes after the base URL that its SDKs take."""

    tail: re.Pattern[str]
    variable: str  # of the provider that the format is named after
    header: str = "authorization"
    prefix: str = "Bearer "

    def under(self, base_url: str, url: str) -> str:
        """The recorded URL's endpoint under another base URL."""
        parts = urlsplit(url)
        found = self.tail.search(parts.path)
        if found is None:
            raise UsageError(f"{url} has no path of its format: --base-url cannot be put before it")
        tail, base = found[0], base_url.rstrip("/")
        version = re.match(r"/v\d\w*(?=/)", tail)
        if version is not None and base.endswith(version[0]):  # given with its version, as other SDKs take it
            base = base.removesuffix(version[0])
        return base + tail + (f"?{parts.query}" if parts.query else "")

    def key_variable(self, host: str) -> str:
        own = (name for end, name in _KEYS_OF_HOSTS.items() if host == end or host.endswith(f".{end}"))
        return next(own, self.variable)

    def key_headers(self, key: str) -> list[tuple[str, str]]:
        return [(self.header, f"{self.prefix}{key}")]


_BEDROCK = "AWS_BEARER_TOKEN_BEDROCK"  # without one, requests are signed, see `aws_signing`
_PLACES = {
    "openai.chat": Place(re.compile(r"/chat/completions$"), "OPENAI_API_KEY"),
    "openai.responses": Place(re.compile(r"/responses$"), "OPENAI_API_KEY"),
    "anthropic.messages": Place(re.compile(r"(?:/v1)?/messages$"), "ANTHROPIC_API_KEY", "x-api-key", ""),
    "gemini.generate": Place(
        re.compile(r"/v1[^/:]*(?:/models)?(?:/[^/:]+)?:\w+$"), "GEMINI_API_KEY", "x-goog-api-key", ""
    ),
    "gemini.interactions": Place(re.compile(r"/v1[^/]*/interactions$"), "GEMINI_API_KEY", "x-goog-api-key", ""),
    "bedrock.converse": Place(re.compile(r"/model/[^/]+/converse(?:-stream)?$"), _BEDROCK),
    "bedrock.invoke": Place(re.compile(r"/model/[^/]+/invoke(?:-with-response-stream)?$"), _BEDROCK),
    "ollama.chat": Place(re.compile(r"/api/chat$"), "OLLAMA_API_KEY"),
    "cohere.chat": Place(re.compile(r"/v2/chat$"), "CO_API_KEY"),
}


def place_of(name: str, url: str) -> Place:
    """Where a format's endpoint stands."""
    place = _PLACES.get(name)
    if place is None:
        raise UsageError(f"{name} ({url}) cannot be sent live: wiretape does not know where its endpoint stands")
    return place
