"""The environment variables that hold base URLs of models, and their values on the way through wiretape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from wiretape.adapters.routing.hosts import is_known_provider, is_loopback
from wiretape.adapters.routing.routes import base_url_host, parse_base_url

# Variables that SDKs and agents read, and the default of their clients. Each default has the path that clients expect
# in the variable: OpenAI's has /v1, Anthropic's has none.
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
# Routed only if the user has set them: clients expect different values, or a default would switch a feature on.
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
# Any other variable of such a name counts, too, if its value is a known provider's address: it is then surely not the
# address of something else, such as the agent's own web server.
_BASE_URL_NAME = re.compile(r"[A-Z0-9_]*(?:_BASE_URL|_API_BASE|_API_URL|_ENDPOINT)", re.ASCII)


def base_url_variables(environ: Mapping[str, str], port: int, *, offline: bool = False) -> dict[str, str]:
    """Return every base-URL variable, routed through 127.0.0.1:port: the user's value, or the provider's default.

    If the user has set one of a provider's variables, the others get the same value: clients differ in which one they
    read first, and a default would send the user's requests and key to another host. For the same reason, a value that
    cannot be routed stays unchanged, and its provider's other variables are not set. `offline`: nothing behind that
    port connects, so such values are replaced, too.
    """
    routed = {name: _through(url, port) for name, url in _base_urls(environ, offline).items()}
    kept = unroutable_base_urls(environ) if offline else {}
    return {**dict.fromkeys(kept, f"http://127.0.0.1:{port}"), **routed}


def routed_places(environ: Mapping[str, str]) -> frozenset[tuple[str, int]]:
    """Return host and port of every base URL that a recording routes."""
    urls = (parse_base_url(url) for url in _base_urls(environ, offline=False).values())
    return frozenset((url.host.strip("[]"), url.port) for url in urls if url is not None)


def _base_urls(environ: Mapping[str, str], offline: bool) -> dict[str, str]:
    """Return the values of a program's base-URL variables, before they are routed through a port."""
    own = user_base_urls(environ)
    kept = {} if offline else unroutable_base_urls(environ)
    variables: dict[str, str] = {}
    for name, default in DEFAULT_BASE_URLS.items():
        follows = _set_variable(name, own)
        if follows is not None and name not in kept:
            variables[name] = own[follows]
        elif _set_variable(name, kept) is None:
            variables[name] = default
    return variables | own


def same_provider(name: str) -> tuple[str, ...]:
    """Return all variables of the provider of this one, itself included."""
    default = DEFAULT_BASE_URLS.get(name)
    if default is None:
        return (name,)
    return tuple(other for other, url in DEFAULT_BASE_URLS.items() if url == default)


def variables_of(host: str) -> tuple[str, ...]:
    """Return the variables whose default is this host."""
    return tuple(name for name, url in DEFAULT_BASE_URLS.items() if urlsplit(url).hostname == host)


def _set_variable(name: str, own: Mapping[str, str]) -> str | None:
    """Return this variable, or another one of the same provider, if it is in `own`."""
    return name if name in own else next((other for other in same_provider(name) if other in own), None)


def user_base_urls(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the base-URL variables that have a value which can be routed."""
    return {
        name: value
        for name, value in environ.items()
        if (parsed := parse_base_url(value)) is not None
        and (is_listed(name) or (_BASE_URL_NAME.fullmatch(name) and is_known_provider(parsed.host)))
    }


def unroutable_base_urls(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the base-URL variables whose values cannot be routed. An empty value counts as not set."""
    return {
        name: value
        for name, value in environ.items()
        if is_listed(name) and value.strip() and parse_base_url(value) is None
    }


def is_listed(name: str) -> bool:
    """True if a variable is known to hold a base URL."""
    return name in DEFAULT_BASE_URLS or name in WHEN_SET


def not_routed(name: str) -> str:
    """Return the warning about a variable whose value cannot be routed."""
    return (
        f"{name} stays unchanged, because its value is not an http:// or https:// URL with a host: "
        "its requests are recorded only through the proxy variables"
    )


def base_url_hosts(environ: Mapping[str, str]) -> set[str]:
    """Return the hosts of base URLs that the user has set: they serve models, so they are recorded."""
    return {host for url in user_base_urls(environ).values() if (host := base_url_host(url))}


def _through(url: str, port: int) -> str:
    """Route a base URL through a port. One that points to that port already is unchanged."""
    parsed = parse_base_url(url)
    if parsed is None or (parsed.port == port and is_loopback(parsed.host)):
        return url
    return parsed.through(port)


def default_routes(environ: Mapping[str, str]) -> dict[str, str]:
    """Return hosts that a program gets by a provider's default, each with the first variable that names it."""
    own = {**user_base_urls(environ), **unroutable_base_urls(environ)}
    routes: dict[str, str] = {}
    for name, url in DEFAULT_BASE_URLS.items():
        if not any(other in own for other in same_provider(name)):
            routes.setdefault(urlsplit(url).hostname or "", name)
    return routes


def without_default_routes(variables: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Drop base-URL variables that the user has not set."""
    own = user_base_urls(environ)
    return {name: value for name, value in variables.items() if name not in DEFAULT_BASE_URLS or name in own}


def default_route_warning(host: str, variable: str) -> str:
    """Return the warning for a program that a default sent to a host which refused it."""
    return (
        f"wiretape set {variable} to {host}, because it was not set. If the program has another default, export that "
        "before recording, or pass --keep-unset"
    )
