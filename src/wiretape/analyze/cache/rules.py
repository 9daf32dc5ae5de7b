"""Rules of each provider's prompt cache, with the source of each fact.

`docs/cache.md` shows the same table, and a test compares them. A number that sources contradict, or recordings, is
left out: nothing is predicted from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wiretape.model.call import ModelCall

How: TypeAlias = Literal[
    "automatic",  # every request is cached
    "marked",  # only marked parts of a request are cached
    "local",  # slots of a local server, which rarely reports hits
]
MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True)
class CacheRule:
    """The rules of one provider's cache.

    `minimum`: prompts with fewer tokens are not cached; `by_model` has the models that differ (pattern, tokens).
    `step`: hits are multiples of it. `lifetime`: seconds without use after which an entry may be dropped;
    `long_lifetime` applies if the request asks for it. `promised`: the provider serves every intact prefix; without
    a promise a miss proves nothing. `settings`: request members that invalidate the prefix when they change.
    """

    name: str
    how: How
    sources: tuple[str, ...]
    minimum: int | None = None
    by_model: tuple[tuple[str, int], ...] = ()
    step: int = 1
    lifetime: int | None = None
    long_lifetime: int | None = None
    promised: bool = False
    lookback: int | None = None  # blocks before a marker in which the provider finds an earlier entry
    key: str | None = None  # the request member that routes requests to the same cache
    settings: tuple[str, ...] = ()
    answers: bool = False  # answers are cached, too, if they come back unchanged

    def least(self, model: str | None) -> int | None:
        """Return the smallest cacheable prompt of a model, in tokens; None if unknown."""
        for pattern, tokens in self.by_model:
            if re.search(pattern, model or ""):
                return tokens
        return self.minimum


_CLAUDE = (
    (r"opus-5|fable-5|mythos-5", 512),
    (r"haiku-4-5|opus-4-[56]", 4096),
    (r"haiku-3|3-haiku|3-5-haiku", 2048),
    (r"sonnet-(?:4|5|3-7)(?!-6)|3-7-sonnet|opus-4(?:-1)?(?:-2025|@|$)", 1024),
)
_NEWER_OPENAI = re.compile(r"gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)")

ANTHROPIC = CacheRule(
    "anthropic",
    "marked",
    by_model=_CLAUDE,
    lifetime=5 * MINUTE,
    long_lifetime=HOUR,
    promised=True,
    lookback=20,
    settings=("tool_choice", "thinking", "speed", "output_config"),
    sources=(
        "platform.claude.com/docs/en/build-with-claude/prompt-caching: order, markers, lookback, lifetimes",
        "minimums: documentation and LiteLLM's table where they agree; where they do not, none is assumed",
        "recorded: the next call reads exactly what the last one read and wrote (1,069; 1,111; 1,590; 9,511)",
    ),
)
BEDROCK = CacheRule(
    "bedrock",
    "marked",
    by_model=_CLAUDE,
    lifetime=5 * MINUTE,
    long_lifetime=HOUR,
    promised=True,
    lookback=20,
    settings=("toolChoice", "additionalModelRequestFields"),
    sources=(
        "docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html: cachePoint, lifetimes",
        "recorded: 1,712 written, then read; cross-region profiles may reach a region that never saw the prompt",
    ),
)
OPENAI = CacheRule(
    "openai",
    "automatic",
    minimum=1024,
    step=128,
    lifetime=5 * MINUTE,
    long_lifetime=DAY,
    promised=True,
    key="prompt_cache_key",
    settings=("response_format", "text"),
    sources=(
        "developers.openai.com/api/docs/guides/prompt-caching: 1,024 tokens, exact prefix, prompt_cache_key",
        "learn.microsoft.com/azure/foundry/openai/how-to/prompt-caching: gone after 5 to 10 idle minutes, or kept 24 h",
        "recorded: 18 of 22 different hits are multiples of 128; some newer models report others",
    ),
)
OPENAI_NEWER = CacheRule(
    "openai (gpt-5.6 and later)",
    "automatic",
    minimum=1024,
    lifetime=30 * MINUTE,
    long_lifetime=12 * HOUR,
    promised=True,
    key="prompt_cache_key",
    settings=("text", "reasoning", "service_tier"),
    sources=(
        "developers.openai.com/api/docs/guides/prompt-caching: breakpoints, writes that cost, 30 minutes at least",
        "openai-python types: prompt_cache_options, prompt_cache_diagnostics and its reasons",
    ),
)
DEEPSEEK = CacheRule(
    "deepseek",
    "automatic",
    minimum=128,
    step=128,
    lifetime=2 * HOUR,
    promised=True,
    answers=True,
    sources=(
        "api-docs.deepseek.com/guides/kv_cache: always on; only whole prefix units are served; kept for hours to days",
        "recorded: all hits are multiples of 128 (the older documentation names units of 64)",
    ),
)
GEMINI = CacheRule(
    "gemini",
    "automatic",
    sources=(
        "ai.google.dev/gemini-api/docs/caching: implicit from 2.5 on, without a guarantee; minimums changed over time",
        "recorded: hits of 92 tokens, far below every documented minimum, so none is assumed",
    ),
)
XAI = CacheRule(
    "xai",
    "automatic",
    key="prompt_cache_key",
    sources=(
        "docs.x.ai/developers/advanced-api-usage/prompt-caching: automatic, per server, may go at any time",
        "recorded: hits of any size from 7 tokens on",
    ),
)
GROQ = CacheRule(
    "groq",
    "automatic",
    lifetime=2 * HOUR,
    sources=("console.groq.com/docs/prompt-caching: automatic, not guaranteed, gone after 2 hours without use",),
)
QWEN = CacheRule(
    "qwen",
    "automatic",
    lookback=20,
    lifetime=5 * MINUTE,
    sources=(
        "alibabacloud.com/help/model-studio/context-cache: implicit, not guaranteed; cache_control keeps 5 minutes",
    ),
)
MISTRAL = CacheRule("mistral", "automatic", sources=("recorded: hits in multiples of 16 from 32 tokens on",), step=16)
ZHIPU = CacheRule("zhipu", "automatic", sources=("recorded: hits of any size from 43 tokens on",))
MOONSHOT = CacheRule("moonshot", "automatic", sources=("recorded: hits in multiples of 32 from 64 tokens on",), step=32)
COHERE = CacheRule("cohere", "automatic", sources=("recorded: cached_tokens in the answers; no rule is known",))
LOCAL = CacheRule(
    "local server",
    "local",
    sources=("Ollama reports no cached tokens; llama.cpp tells timings.cache_n; both keep the last prompts in slots",),
)
OTHER = CacheRule("other", "automatic", sources=("no rule is known: prefixes are compared, nothing is predicted",))

RULES = (
    ANTHROPIC,
    BEDROCK,
    OPENAI,
    OPENAI_NEWER,
    DEEPSEEK,
    GEMINI,
    XAI,
    GROQ,
    QWEN,
    MISTRAL,
    ZHIPU,
    MOONSHOT,
    COHERE,
    LOCAL,
    OTHER,
)
_BY_DIALECT = {
    "deepseek": DEEPSEEK,
    "xai": XAI,
    "groq": GROQ,
    "qwen": QWEN,
    "mistral": MISTRAL,
    "zhipu": ZHIPU,
    "moonshot": MOONSHOT,
    "gemini": GEMINI,
    "vertex": GEMINI,
    "code-assist": GEMINI,
}
_BY_MODEL = (  # used if the host is unknown, such as a gateway
    (re.compile(r"claude"), ANTHROPIC),
    (re.compile(r"(?:^|/)(?:gpt-\d|o[134](?:-|$)|codex|chatgpt)"), OPENAI),
    (re.compile(r"deepseek"), DEEPSEEK),
    (re.compile(r"gemini"), GEMINI),
    (re.compile(r"grok"), XAI),
    (re.compile(r"kimi|moonshot"), MOONSHOT),
    (re.compile(r"glm"), ZHIPU),
    (re.compile(r"mistral|codestral|magistral"), MISTRAL),
    (re.compile(r"qwen"), QWEN),
)
_OPENAI_HOSTS = ("openai", "azure", "chatgpt", "copilot")


def rule_for(call: ModelCall) -> CacheRule:
    """Return the rules for a call: by its wire format and host, then by the model's name."""
    model = (call.request.model or call.model or "").lower()
    rule = _of(call, model)
    names = f"{model} {call.model or ''}"  # the requested name may be that of a deployment
    return OPENAI_NEWER if rule is OPENAI and _NEWER_OPENAI.search(names) else rule


def _of(call: ModelCall, model: str) -> CacheRule:
    if call.format.startswith("ollama."):
        return LOCAL
    if call.format.startswith("cohere."):
        return COHERE
    if call.format.startswith("bedrock."):
        return BEDROCK
    if call.format.startswith("gemini."):
        return GEMINI
    if call.dialect in _OPENAI_HOSTS:
        return OPENAI
    named = next((rule for pattern, rule in _BY_MODEL if pattern.search(model)), None)
    if call.dialect in _BY_DIALECT:
        # Vertex also serves Claude.
        return ANTHROPIC if named is ANTHROPIC else _BY_DIALECT[call.dialect]
    if call.format == "anthropic.messages" and (call.dialect == "anthropic" or named is None):
        return ANTHROPIC
    if call.dialect is not None and call.dialect != "openrouter":
        return OTHER  # another host serves the model, with unknown rules
    if named is OPENAI and "oss" in model:
        return OTHER  # open weights, served by any host
    return named or OTHER


def lifetime(rule: CacheRule, asked_long: bool) -> int | None:
    """Return the seconds without use after which an entry may be dropped."""
    return rule.long_lifetime if rule.long_lifetime is not None and asked_long else rule.lifetime


def asks_long(call: ModelCall) -> bool:
    """True if a call wrote entries with the longer lifetime, or requested it."""
    settings, usage = call.request.settings, call.usage
    if settings.get("prompt_cache_retention") == "24h":
        return True
    options = settings.get("prompt_cache_options")
    if isinstance(options, dict) and options.get("ttl") not in (None, "30m"):
        return True
    marker = settings.get("cache_control")
    if isinstance(marker, dict) and marker.get("ttl") == "1h":
        return True
    split = usage.raw.get("cache_creation") if usage is not None else None
    return isinstance(split, dict) and bool(split.get("ephemeral_1h_input_tokens"))
