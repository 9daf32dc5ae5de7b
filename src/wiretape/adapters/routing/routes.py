"""Path routes: how a base URL leads through wiretape's own port to the host that it stands for.

`http://127.0.0.1:PORT/api.deepseek.com/v1` stands for `https://api.deepseek.com/v1`. A loopback host is spoken to in
plain http. Where that rule would be wrong the first segment states the scheme: `/http:models.internal:8080/v1`.
Shared by the recorder and the replay server; nothing here connects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from wiretape.adapters.routing.hosts import is_known_provider, is_loopback

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
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+?)(?::(?P<port>\d{0,5}))?", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Spaces and a quote may precede the URL in a variable: what a client makes of them is left to it.
_BASE_URL = re.compile(
    r"(?P<before>\s*[\"']?)(?P<scheme>https?)://(?P<user>[^/?#\s]*@)?(?P<authority>[^/?#\s\"'\\]*)(?P<after>[/?#].*|[\s\"']*)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A base URL that can be routed, taken apart. All but its origin goes through a route as it is written."""

    before: str
    scheme: str
    user: str  # with its @, if there is one
    host: str  # in ASCII and lower case; an IPv6 address has its brackets
    port: int  # the scheme's own where none is written
    after: str  # path, query and fragment

    @property
    def authority(self) -> str:
        """Host and port, without the scheme's default port."""
        return self.host if self.port == _DEFAULT_PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def segment(self) -> str:
        """The first path segment of its route."""
        plain = _segment_base(self.authority) == f"{self.scheme}://{self.authority}"
        return self.authority if plain else f"{self.scheme}:{self.authority}"

    def through(self, port: int) -> str:
        """The same URL with the origin replaced by its route on 127.0.0.1:port.

        User info and query stay: the client sends them as it would without wiretape.
        """
        return f"{self.before}http://{self.user}127.0.0.1:{port}/{self.segment}{self.after}"


@lru_cache(256)
def parse_base_url(text: str) -> BaseUrl | None:
    """The parts of a base URL, or None if it cannot be routed: another scheme, no host, a port that is not one."""
    match = _BASE_URL.fullmatch(text)
    authority = match and _AUTHORITY.fullmatch(_ascii(match["authority"]))
    if match is None or authority is None:
        return None
    scheme = match["scheme"].lower()
    port = int(authority["port"] or _DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        return None
    return BaseUrl(match["before"], scheme, match["user"] or "", authority["host"].lower(), port, match["after"])


def _ascii(authority: str) -> str:
    """An internationalized host as it is sent; what cannot be encoded stays, and is not a host then."""
    if authority.isascii():
        return authority
    try:
        return authority.encode("idna").decode()
    except UnicodeError:
        return authority


@lru_cache(256)  # and makes much the same requests
def route_url(path_and_query: str, upstream: str | None = None) -> str | None:
    """The URL that an origin-form request target means; None if it names no host and there is no `upstream`.

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
    parsed = parse_base_url(url)
    if parsed is None:
        raise ValueError(f"{url!r} cannot be routed")
    return f"/{parsed.segment}{parsed.after}"


def base_url_variables(environ: Mapping[str, str], port: int, *, offline: bool = False) -> dict[str, str]:
    """Every base-URL variable, pointing into 127.0.0.1:port: the user's own value, or the provider's default.

    Where the user set one of a provider's variables, the others follow it: clients differ in which they read first, and
    a default would take the user's requests, and the user's key, elsewhere. For the same reason a value that cannot be
    routed stays as it is, and its provider's other variables are not set. `offline`: nothing goes anywhere from that
    port, so that such values point into it, too.
    """
    led = {name: _through(url, port) for name, url in _led_base_urls(environ, offline).items()}
    kept = unroutable_base_urls(environ) if offline else {}
    return {**dict.fromkeys(kept, f"http://127.0.0.1:{port}"), **led}


def routed_places(environ: Mapping[str, str]) -> frozenset[tuple[str, int]]:
    """Host and port of every base URL that a recording routes."""
    urls = (parse_base_url(url) for url in _led_base_urls(environ, offline=False).values())
    return frozenset((url.host.strip("[]"), url.port) for url in urls if url is not None)


def _led_base_urls(environ: Mapping[str, str], offline: bool) -> dict[str, str]:
    """The base URLs that a program's variables hold, before they are routed through a port."""
    own = user_base_urls(environ)
    kept = {} if offline else unroutable_base_urls(environ)
    variables: dict[str, str] = {}
    for name, default in DEFAULT_BASE_URLS.items():
        follows = _also_called(name, own)
        if follows is not None and name not in kept:
            variables[name] = own[follows]
        elif _also_called(name, kept) is None:
            variables[name] = default
    return variables | own


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
    """This variable, or another one of the same provider, if the user set one."""
    return name if name in own else next((other for other in same_provider(name) if other in own), None)


def user_base_urls(environ: Mapping[str, str]) -> dict[str, str]:
    """The base-URL variables among these that can be routed, with their values."""
    return {
        name: value
        for name, value in environ.items()
        if (parsed := parse_base_url(value)) is not None
        and (is_listed(name) or (_BASE_URL_NAME.fullmatch(name) and is_known_provider(parsed.host)))
    }


def unroutable_base_urls(environ: Mapping[str, str]) -> dict[str, str]:
    """The base-URL variables whose values cannot be routed. An empty value counts as none, as it does for clients."""
    return {
        name: value
        for name, value in environ.items()
        if is_listed(name) and value.strip() and parse_base_url(value) is None
    }


def is_listed(name: str) -> bool:
    """Whether a variable holds a base URL, whatever its value is."""
    return name in DEFAULT_BASE_URLS or name in WHEN_SET


def not_routed(name: str) -> str:
    """The message about a variable whose value cannot be routed."""
    return (
        f"{name} is left as it is, because its value is not an http:// or https:// URL with a host: "
        "requests there are recorded only if they obey the proxy variables"
    )


def base_url_hosts(environ: Mapping[str, str]) -> set[str]:
    """Hosts that the user's own base-URL variables name: they serve models, whatever door leads to them."""
    return {host for url in user_base_urls(environ).values() if (host := base_url_host(url))}


def base_url_host(url: str) -> str:
    """The host of a base URL, without brackets; empty if it cannot be routed."""
    parsed = parse_base_url(url)
    return parsed.host.strip("[]") if parsed is not None else ""


def without_user(url: str) -> str:
    """A base URL as it is shown: user info may hold a password."""
    parsed = parse_base_url(url)
    return url.replace(parsed.user, "…@", 1) if parsed is not None and parsed.user else url


def base_url_problem(url: str) -> str | None:
    """Why an upstream URL cannot be used, in words that follow the URL; None if it can."""
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
    host, port = match["host"].lower(), match["port"] or None
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


def _through(url: str, port: int) -> str:
    """A base URL that can be routed, through that port; one that points into it already stays."""
    parsed = parse_base_url(url)
    if parsed is None or (parsed.port == port and is_loopback(parsed.host)):
        return url
    return parsed.through(port)
