"""Decides which hosts are recorded: known model providers, loopback, and hosts of the user. No name is resolved."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

# Hosts that serve models, as globs. A missing host costs a user one `--host`; a wrong one records other traffic: list
# only hosts that serve little else.
KNOWN_PROVIDERS: tuple[str, ...] = (
    # OpenAI, Azure, GitHub
    "api.openai.com",
    "*.api.openai.com",
    "chatgpt.com",
    "*.openai.azure.com",
    "*.services.ai.azure.com",
    "*.cognitiveservices.azure.com",
    "*.models.ai.azure.com",
    "models.inference.ai.azure.com",
    "models.github.ai",
    "*.githubcopilot.com",
    # Anthropic
    "api.anthropic.com",
    # Google
    "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com",
    "*-aiplatform.googleapis.com",
    "cloudcode-pa.googleapis.com",
    # Amazon
    "bedrock-runtime.*.amazonaws.com",
    "bedrock-runtime-fips.*.amazonaws.com",
    "bedrock-mantle.*.api.aws",
    # DeepSeek and other Chinese providers
    "api.deepseek.com",
    "api.moonshot.cn",
    "api.moonshot.ai",
    "api.kimi.com",
    "open.bigmodel.cn",
    "api.z.ai",
    "dashscope.aliyuncs.com",
    "dashscope-*.aliyuncs.com",
    "ark.*.volces.com",
    "ark.*.bytepluses.com",
    "api.minimax.chat",
    "api.minimax.io",
    "api.minimaxi.com",
    "qianfan.baidubce.com",
    "api.hunyuan.cloud.tencent.com",
    "api.siliconflow.cn",
    "api.siliconflow.com",
    "api.stepfun.com",
    "api.lingyiwanwu.com",
    # others
    "api.mistral.ai",
    "codestral.mistral.ai",
    "api.x.ai",
    "*.api.x.ai",
    "api.groq.com",
    "api.cohere.com",
    "api.cohere.ai",
    "api.ai21.com",
    "api.cerebras.ai",
    "api.sambanova.ai",
    "api.together.xyz",
    "api.together.ai",
    "api.fireworks.ai",
    "api.deepinfra.com",
    "api.perplexity.ai",
    "api.novita.ai",
    "api.hyperbolic.xyz",
    "api.studio.nebius.com",
    "api.studio.nebius.ai",
    "api.tokenfactory.nebius.com",
    "api.venice.ai",
    "api.voyageai.com",
    "api.jina.ai",
    "inference.baseten.co",
    "integrate.api.nvidia.com",
    "ollama.com",
    # gateways
    "openrouter.ai",
    "gateway.ai.cloudflare.com",
    "ai-gateway.vercel.sh",
    "router.huggingface.co",
    "api-inference.huggingface.co",
    "*.endpoints.huggingface.cloud",
)

_SET = re.compile(r"\[!?\]?[^\]]*\]")  # a character set of a glob


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """True if a host name or address (without port, brackets allowed) is this machine, by its spelling alone."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)  # Python 3.13 and later resolve this themselves
    return (mapped or address).is_loopback


@lru_cache(maxsize=1024)
def is_address(host: str) -> bool:
    """True if a host is an IPv4 or IPv6 address, without brackets; a zone (`%eth0`) is allowed."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def is_known_provider(host: str) -> bool:
    """True if a host is one of KNOWN_PROVIDERS."""
    name = host.rstrip(".").lower()
    return any(fnmatchcase(name, glob) for glob in KNOWN_PROVIDERS)


def provider_within(glob: str) -> str | None:
    """Return the first known provider that a glob over the host, or over host:port, could match."""
    name = _SET.sub("?", glob.strip().lower())
    host = name.rpartition(":")[0] or name
    return next(
        (known for known in KNOWN_PROVIDERS if any(_overlap(one.rstrip("."), known) for one in (name, host))), None
    )


@lru_cache(maxsize=65536)
def _overlap(one: str, other: str) -> bool:
    """True if some name matches both globs."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return _overlap(one[1:], other) or _overlap(one, other[1:])
    if other[0] == "*":
        return _overlap(other, one)
    return (one[0] == other[0] or "?" in (one[0], other[0])) and _overlap(one[1:], other[1:])


class Hosts:
    """Decides whether a host is recorded. `extra`: globs over the host, or over host:port if they have a port."""

    def __init__(self, extra: Sequence[str] = (), everything: bool = False) -> None:
        self._extra = tuple(glob.strip().rstrip(".").lower() for glob in extra)
        self._everything = everything

    def recorded(self, host: str, port: int) -> bool:
        if self._everything or is_loopback(host) or is_known_provider(host):
            return True
        name = host.strip("[]").rstrip(".").lower()
        return any(fnmatchcase(name, glob) or fnmatchcase(f"{name}:{port}", glob) for glob in self._extra)
