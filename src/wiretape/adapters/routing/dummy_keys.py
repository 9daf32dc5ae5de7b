"""Dummy API keys and other variables without which an SDK does not start in a replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wiretape.matching.session import ReplaySession

# Keys are set only for providers on the tape, and only if the user has none, because some programs choose their
# provider by the keys that exist. If a tape is empty (a test that was never recorded), all are set: the program then
# fails with the message about the missing tape, not about a missing key.
_KEYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("api.openai.com", ("OPENAI_API_KEY",)),
    ("api.anthropic.com", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
    ("api.deepseek.com", ("DEEPSEEK_API_KEY",)),
    ("generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    ("openrouter.ai", ("OPENROUTER_API_KEY",)),
    ("api.mistral.ai", ("MISTRAL_API_KEY",)),
    ("api.groq.com", ("GROQ_API_KEY",)),
    ("api.x.ai", ("XAI_API_KEY",)),
    ("api.cerebras.ai", ("CEREBRAS_API_KEY",)),
    ("api.together.xyz", ("TOGETHER_API_KEY",)),
    ("api.cohere.com", ("CO_API_KEY",)),
    ("api.moonshot.cn", ("MOONSHOT_API_KEY",)),
    ("dashscope.aliyuncs.com", ("DASHSCOPE_API_KEY",)),
    ("ark.cn-beijing.volces.com", ("ARK_API_KEY",)),
)
_KEYS_OF_FORMATS = {
    "openai.chat": ("OPENAI_API_KEY",),
    "openai.responses": ("OPENAI_API_KEY",),
    "anthropic.messages": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini.generate": ("GEMINI_API_KEY",),
    "gemini.interactions": ("GEMINI_API_KEY",),
    "cohere.chat": ("CO_API_KEY",),
}
# Bedrock's hosts differ by region, so there is no default base URL. The SDK also needs a region and credentials.
_BEDROCK_URLS = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "ANTHROPIC_BEDROCK_BASE_URL")
_AWS_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_AWS_IDENTITIES = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")
DUMMY_KEY = "sk-wiretape-replay"


def dummy_keys(environ: Mapping[str, str], session: ReplaySession) -> dict[str, str]:
    """Return dummy keys for the providers on the tape: the first name of each row of which the user has set none."""
    empty = not any(tape.exchanges for tape in session.tapes)
    rows = [names for host, names in _KEYS if empty or session.knows_host(host)]
    rows += [_KEYS_OF_FORMATS[name] for name in session.formats if name in _KEYS_OF_FORMATS]
    return {names[0]: DUMMY_KEY for names in rows if not any(environ.get(name) for name in names)}


def bedrock_variables(environ: Mapping[str, str], session: ReplaySession, port: int) -> dict[str, str]:
    """Return what Bedrock's SDKs need, if the tape has calls to it. Values that the user has set are kept."""
    if not any(name.startswith("bedrock.") for name in session.formats):
        return {}
    variables = {name: f"http://127.0.0.1:{port}" for name in _BEDROCK_URLS if not environ.get(name)}
    if not any(environ.get(name) for name in _AWS_REGIONS):
        variables |= dict.fromkeys(_AWS_REGIONS, "us-east-1")
    if not any(environ.get(name) for name in _AWS_IDENTITIES):
        variables |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), DUMMY_KEY)
    return variables
