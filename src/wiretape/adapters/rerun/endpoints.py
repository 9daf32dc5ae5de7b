"""Endpoint URLs of the wire formats, and the API key or signature that each endpoint requires.

Requests to Amazon Bedrock are signed (Signature Version 4) by botocore, with the credentials that its own chain finds:
variables, profiles, SSO, the machine's role. botocore is optional and imported only here. Bedrock's API keys are bearer
tokens and need no signature.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from wiretape.errors import UsageError

# Hosts whose key has its own variable, in any format.
_HOST_KEYS: Final = {
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
class Endpoint:
    """A format's endpoint. `tail` is the part of a recorded URL's path after the base URL that SDKs take."""

    tail: re.Pattern[str]
    variable: str  # of the provider that the format is named after
    header: str = "authorization"
    prefix: str = "Bearer "

    def under(self, base_url: str, url: str) -> str:
        """Return a recorded URL with another base URL."""
        parts = urlsplit(url)
        found = self.tail.search(parts.path)
        if found is None:
            raise UsageError(f"cannot apply --base-url to {url}: its path is not an endpoint of its wire format")
        tail, base = found[0], base_url.rstrip("/")
        version = re.match(r"/v\d\w*(?=/)", tail)
        if version is not None and base.endswith(version[0]):  # some SDKs take the version in the base URL
            base = base.removesuffix(version[0])
        return base + tail + (f"?{parts.query}" if parts.query else "")

    def key_variable(self, host: str) -> str:
        """Return the variable that holds the API key for a host."""
        own = (name for end, name in _HOST_KEYS.items() if host == end or host.endswith(f".{end}"))
        return next(own, self.variable)

    def key_headers(self, key: str) -> list[tuple[str, str]]:
        return [(self.header, f"{self.prefix}{key}")]


_BEDROCK_KEY: Final = "AWS_BEARER_TOKEN_BEDROCK"  # without it, requests are signed
_ENDPOINTS: Final = {
    "openai.chat": Endpoint(re.compile(r"/chat/completions$"), "OPENAI_API_KEY"),
    "openai.responses": Endpoint(re.compile(r"/responses$"), "OPENAI_API_KEY"),
    "anthropic.messages": Endpoint(re.compile(r"(?:/v1)?/messages$"), "ANTHROPIC_API_KEY", "x-api-key", ""),
    "gemini.generate": Endpoint(
        re.compile(r"/v1[^/:]*(?:/models)?(?:/[^/:]+)?:\w+$"), "GEMINI_API_KEY", "x-goog-api-key", ""
    ),
    "gemini.interactions": Endpoint(re.compile(r"/v1[^/]*/interactions$"), "GEMINI_API_KEY", "x-goog-api-key", ""),
    "bedrock.converse": Endpoint(re.compile(r"/model/[^/]+/converse(?:-stream)?$"), _BEDROCK_KEY),
    "bedrock.invoke": Endpoint(re.compile(r"/model/[^/]+/invoke(?:-with-response-stream)?$"), _BEDROCK_KEY),
    "ollama.chat": Endpoint(re.compile(r"/api/chat$"), "OLLAMA_API_KEY"),
    "cohere.chat": Endpoint(re.compile(r"/v2/chat$"), "CO_API_KEY"),
}


def endpoint_of(name: str, url: str) -> Endpoint:
    """Return the endpoint of a format. Raises UsageError if it is unknown."""
    endpoint = _ENDPOINTS.get(name)
    if endpoint is None:
        raise UsageError(f"cannot send {url} live: wiretape does not know the endpoint of {name}")
    return endpoint


_BEDROCK_HOST: Final = re.compile(
    r"(?:^|\.)bedrock-runtime(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?:vpce\.)?(?:amazonaws\.com(?:\.cn)?|api\.aws)$"
)
_SIGNATURE_HEADERS: Final = ("authorization", "x-amz-date", "x-amz-security-token")
_OR_KEY: Final = f"  or set {_BEDROCK_KEY} to a Bedrock API key"


def region_of(url: str) -> str | None:
    """Return the AWS region of a Bedrock endpoint, or None for any other URL."""
    found = _BEDROCK_HOST.search((urlsplit(url).hostname or "").lower())
    return found["region"] if found is not None else None


def signature(url: str, headers: Iterable[tuple[str, str]], data: bytes, region: str) -> list[tuple[str, str]]:
    """Return the headers that sign a POST to Bedrock."""
    request = _botocore("awsrequest").AWSRequest("POST", url, data=data, headers=dict(headers))
    _botocore("auth").SigV4Auth(_credentials(), "bedrock", region).add_auth(request)
    return [(name.lower(), value) for name, value in request.headers.items() if name.lower() in _SIGNATURE_HEADERS]


def _credentials() -> Any:
    problems = _botocore("exceptions")
    try:
        found = _found_credentials(tuple(sorted(pair for pair in os.environ.items() if pair[0].startswith("AWS_"))))
        frozen = found.get_frozen_credentials() if found is not None else None
    except (problems.BotoCoreError, problems.ClientError) as error:  # ClientError: for example, a refused role
        raise UsageError(f"cannot get AWS credentials: {error}\n{_OR_KEY}") from None
    if frozen is None:
        raise UsageError(
            "found no AWS credentials to sign requests to Bedrock\n"
            f"  set AWS_ACCESS_KEY_ID, AWS_PROFILE, … as for the AWS SDK\n{_OR_KEY}"
        )
    return frozen


@lru_cache(1)
def _found_credentials(variables: tuple[tuple[str, str], ...]) -> Any:
    """Return the chain's credentials, cached for these variables: a role is requested once."""
    return _botocore("session").Session().get_credentials()


def _botocore(module: str) -> Any:
    try:
        return import_module(f"botocore.{module}")
    except ImportError:
        raise UsageError(
            f"requests to Bedrock need botocore for their signature: pip install botocore\n{_OR_KEY}"
        ) from None
