"""Path routes: how a base URL leads through wiretape's own port to the host that it stands for.

`http://127.0.0.1:PORT/api.deepseek.com/v1` stands for `https://api.deepseek.com/v1`. A loopback host is spoken to in
plain http. Where that rule would be wrong the first segment states the scheme: `/http:models.internal:8080/v1`.
Shared by the recorder and the replay server; nothing here connects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from wiretape.adapters.hosts import is_known_provider, is_loopback

# Variables that SDKs and agents read, with the value that a client without them would use. Each default carries
# the path that its clients expect in the variable: OpenAI's has /v1, Anthropic's has not.
DEFAULT_BASE_URLS: dict[str, str] = {
    "OPENAI_BASE_URL": "https://api.openai.com/v1",
    "OPENAI_API_BASE": "https://api.openai.com/v1",
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
    "ANTHROPIC_API_BASE": "https://api.anthropic.com",
    "DEEPSEEK_BASE_URL": "https://api.deepseek.com",
    "GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
    "GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
    "OPENROUTER_BASE_URL": "https://openrouter.ai/api/v1",
    "OPENROUTER_API_BASE": "https://openrouter.ai/api/v1",
    "MISTRAL_BASE_URL": "https://api.mistral.ai/v1",
    "MISTRAL_API_BASE": "https://api.mistral.ai/v1",
    "GROQ_BASE_URL": "https://api.groq.com",
    "XAI_BASE_URL": "https://api.x.ai/v1",
    "XAI_API_BASE": "https://api.x.ai/v1",
    "CEREBRAS_BASE_URL": "https://api.cerebras.ai",
    "TOGETHER_BASE_URL": "https://api.together.xyz/v1",
    "CO_API_URL": "https://api.cohere.com",
}
# Rewritten only where the user set them: clients disagree on what they hold, or a default would switch a feature on.
WHEN_SET: frozenset[str] = frozenset(
    {
        "ANTHROPIC_BEDROCK_BASE_URL",
        "ANTHROPIC_FOUNDRY_BASE_URL",
        "ANTHROPIC_VERTEX_BASE_URL",
        "ARK_BASE_URL",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        "AZURE_API_BASE",
        "AZURE_OPENAI_ENDPOINT",
        "DASHSCOPE_BASE_URL",
        "DASHSCOPE_HTTP_BASE_URL",
        "DEEPSEEK_API_BASE",
        "GEMINI_API_BASE",
        "GOOGLE_VERTEX_BASE_URL",
        "LITELLM_PROXY_API_BASE",
        "LLM_BASE_URL",
        "LM_STUDIO_BASE_URL",
        "MOONSHOT_BASE_URL",
        "OLLAMA_API_BASE",
        "OLLAMA_BASE_URL",
        "VLLM_BASE_URL",
        "ZHIPUAI_BASE_URL",
    }
)
# Any other variable of such a name counts too, if its value is a known provider's address: then it cannot be the
# address of something else, such as the agent's own web server.
_BASE_URL_NAME = re.compile(r"[A-Z0-9_]*(?:_BASE_URL|_API_BASE|_API_URL|_ENDPOINT)", re.ASCII)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+?)(?::(?P<port>\d{1,5}))?", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@lru_cache(256)  # and makes much the same requests
def route_url(path_and_query: str, upstream: str | None = None) -> str | None:
    """The URL that an origin-form request target stands for, or None where it names no host and no `upstream` is given.

    A first segment that could be a file name (`/openapi.json`) is a host only if more path follows.
    """
    path, mark, query = path_and_query.partition("?")
    segment, slash, rest = path.removeprefix("/").partition("/")
    base = _segment_base(unquote(segment))
    if base is not None and (slash or upstream is None):
        return f"{base}/{_with_version(base, rest)}{mark}{query}"
    if upstream is None:
        return None
    return f"{upstream.rstrip('/')}/{path.removeprefix('/')}{mark}{query}"


def _with_version(base: str, rest: str) -> str:
    """ANTHROPIC_BASE_URL has no /v1 for Anthropic's own SDKs, and has one for the AI SDK, which leaves it out here."""
    return f"v1/{rest}" if base == "https://api.anthropic.com" and rest.startswith("messages") else rest


def route_path(url: str) -> str:
    """The path under wiretape's own port that stands for a URL: the inverse of `route_url`."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    shown = f"[{host}]" if ":" in host else host
    explicit = parts.port is not None and parts.port != _DEFAULT_PORTS.get(parts.scheme)
    segment = f"{shown}:{parts.port}" if explicit else shown
    if _segment_base(segment) != f"{parts.scheme}://{segment}":
        segment = f"{parts.scheme}:{segment}"
    return f"/{segment}{parts.path}" + (f"?{parts.query}" if parts.query else "")


def base_url_variables(environ: Mapping[str, str], port: int) -> dict[str, str]:
    """Every base-URL variable, pointing into 127.0.0.1:port: the user's own value, or the provider's default.

    Where the user set one of a provider's variables, the others follow it: clients differ in which they read first, and
    a default would take the user's requests, and the user's key, elsewhere.
    """
    own = user_base_urls(environ)
    variables = {name: own.get(_also_called(name, own) or "", url) for name, url in DEFAULT_BASE_URLS.items()} | own
    return {
        name: url if _is_own(url, port) else f"http://127.0.0.1:{port}{route_path(url)}"
        for name, url in variables.items()
    }


def same_provider(name: str) -> tuple[str, ...]:
    """All variables that hold what this one holds, itself among them."""
    default = DEFAULT_BASE_URLS.get(name)
    if default is None:
        return (name,)
    return tuple(other for other, url in DEFAULT_BASE_URLS.items() if url == default)


def variables_of(host: str) -> tuple[str, ...]:
    """The variables that lead to this host where the user set none of them."""
    return tuple(name for name, url in DEFAULT_BASE_URLS.items() if urlsplit(url).hostname == host)


def _also_called(name: str, own: Mapping[str, str]) -> str | None:
    """The variable of the same provider that the user set, if any."""
    return next((other for other in same_provider(name) if other in own), None)


def user_base_urls(environ: Mapping[str, str]) -> dict[str, str]:
    """The base-URL variables among these that can be routed, with their values."""
    return dict(_user_base_urls(environ))


def base_url_hosts(environ: Mapping[str, str]) -> set[str]:
    """Hosts that the user's own base-URL variables name: they serve models, whatever door leads to them."""
    return {host for _, url in _user_base_urls(environ) if (host := urlsplit(url).hostname)}


def base_url_problem(url: str) -> str | None:
    """What is wrong with an upstream URL, in words that finish "URL …"; None if nothing is."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"is not a URL ({error})"
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return "needs a scheme and a host, such as https://api.deepseek.com/v1"
    if parts.query or parts.fragment or parts.username is not None or port == 0:
        return "must be a plain base URL: no user, query or fragment"
    return None


@lru_cache(256)  # a program speaks to few hosts
def _segment_base(segment: str) -> str | None:
    """`https://HOST[:PORT]` for a first path segment that names a host, else None."""
    scheme, colon, authority = segment.partition(":")
    if not (colon and scheme in _DEFAULT_PORTS):
        scheme, authority = "", segment
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return None
    host, port = match["host"].lower(), match["port"]
    if port is not None and not 0 < int(port) < 65536:
        return None
    if not scheme and not _looks_like_host(host, port):
        return None
    if not scheme:
        scheme = "http" if is_loopback(host) and port != "443" else "https"
    return f"{scheme}://{host}" + (f":{port}" if port else "")


def _looks_like_host(host: str, port: str | None) -> bool:
    """A bare word is a path (`v1`), and so is a version (`v1.1`); a dotted name, an address or a port is a host."""
    if port is not None or host.startswith("[") or is_loopback(host):
        return True
    if re.fullmatch(r"(\d{1,3}\.){3}\d{1,3}", host):
        return True
    labels = host.rstrip(".").split(".")
    return len(labels) > 1 and all(labels) and labels[-1][0].isalpha()


def _user_base_urls(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(variable, URL) of every base URL that the user set and that can be routed."""
    for name, value in environ.items():
        known = name in DEFAULT_BASE_URLS or name in WHEN_SET
        if not known and not _BASE_URL_NAME.fullmatch(name):
            continue
        if base_url_problem(value) is None and (known or is_known_provider(urlsplit(value).hostname or "")):
            yield name, value


def _is_own(url: str, port: int) -> bool:
    parts = urlsplit(url)
    return parts.port == port and is_loopback(parts.hostname or "")
