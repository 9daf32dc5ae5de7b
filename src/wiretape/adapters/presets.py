"""What well-known programs need so that a recorder or a replay server is in front of their models. Data only.

A preset is one entry of PRESETS. Proxy, certificate and base-URL variables are set for every program (child.py,
trust.py, routes.py); a preset holds what comes on top. `programs.py` finds the preset of a command line,
`preparing.py` applies it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

When: TypeAlias = Literal["always", "record", "replay"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable to set. The user's own value goes first. Either a fixed `value`, or a `route` for that URL."""

    name: str
    why: str
    value: str = ""
    route: str = ""
    when: When = "always"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file in which a program keeps base URLs, and how they are overridden without touching it.

    `paths` begin with `~` or belong to the working directory; `directory_variable` moves the directory of those under
    `~`. `keys` are dotted, `*` stands for any name. `defaults` are keys that count even where no file sets them, if a
    tape knows the host of their URL.

    `override`: `flag` puts `-c KEY=VALUE` after the program's name, `variable` puts JSON into `override_variable`,
    `copy` points `override_variable` at a copy of the file's directory: links to all that is in it but the file itself.
    """

    paths: tuple[str, ...]
    keys: tuple[str, ...]
    override: Literal["flag", "variable", "copy"]
    override_variable: str = ""
    directory_variable: str = ""
    defaults: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    """`verified` is the version that was recorded and replayed; None: read of it, never seen running."""

    name: str
    title: str
    verified: str | None
    commands: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()  # of npm or PyPI: `npx PACKAGE`, or a piece of a script's path
    modules: tuple[str, ...] = ()  # python -m MODULE
    variables: tuple[Variable, ...] = ()
    config: ConfigFile | None = None
    env_files: tuple[str, ...] = ()  # besides .env: files of variables that the program reads itself
    hosts: tuple[str, ...] = ()  # to record besides the known providers
    notes: tuple[str, ...] = ()


_AIOHTTP = Variable(
    "AIOHTTP_TRUST_ENV", "litellm's asynchronous calls read the proxy variables only with this", value="True"
)

PRESETS: tuple[Preset, ...] = (
    Preset(
        "dsh",
        "DeepSeek Harness",
        "0.1.0-rc.8",
        commands=("dsh",),
        packages=("@deepseek-ai/dsh",),
    ),
    Preset(
        "claude",
        "Claude Code",
        "2.1.332",
        commands=("claude",),
        packages=("@anthropic-ai/claude-code",),
        notes=(
            "base URLs under `env` in its settings.json go before the variables that are set here",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC changes its prompt and tools: set it in both runs or none",
        ),
    ),
    Preset(
        "codex",
        "Codex",
        "0.171.0",
        commands=("codex",),
        packages=("@openai/codex",),
        config=ConfigFile(
            paths=("~/.codex/config.toml", ".codex/config.toml"),
            directory_variable="CODEX_HOME",
            keys=("openai_base_url", "chatgpt_base_url", "model_providers.*.base_url"),
            override="flag",
            defaults=(("openai_base_url", "https://api.openai.com/v1"),),
        ),
        env_files=("~/.codex/.env",),
        notes=("it reads no base-URL variable, only its configuration",),
    ),
    Preset(
        "gemini",
        "Gemini CLI",
        "0.61.0",
        commands=("gemini",),
        packages=("@google/gemini-cli",),
        variables=(
            Variable(
                "CODE_ASSIST_ENDPOINT",
                "where it calls the model when it is logged in with a Google account",
                route="https://cloudcode-pa.googleapis.com",
                when="replay",
            ),
        ),
        env_files=(".gemini/.env", "~/.gemini/.env", "~/.env"),
        notes=("a login with a Google account is renewed at oauth2.googleapis.com, which a replay refuses",),
    ),
    Preset(
        "qwen",
        "Qwen Code",
        "0.24.4",
        commands=("qwen",),
        packages=("@qwen-code/qwen-code",),
        env_files=(".qwen/.env", "~/.qwen/.env", "~/.env"),
        notes=("base URLs in its settings.json may go before the variables that are set here",),
    ),
    Preset(
        "pi",
        "pi",
        "0.73.1",
        commands=("pi",),
        packages=("@mariozechner/pi-coding-agent",),
        config=ConfigFile(
            paths=("~/.pi/agent/models.json",),
            directory_variable="PI_CODING_AGENT_DIR",
            keys=("providers.*.baseUrl",),
            override="copy",
            override_variable="PI_CODING_AGENT_DIR",
            defaults=(
                ("providers.anthropic.baseUrl", "https://api.anthropic.com"),
                ("providers.deepseek.baseUrl", "https://api.deepseek.com"),
                ("providers.google.baseUrl", "https://generativelanguage.googleapis.com/v1beta"),
                ("providers.groq.baseUrl", "https://api.groq.com/openai/v1"),
                ("providers.mistral.baseUrl", "https://api.mistral.ai"),
                ("providers.openai.baseUrl", "https://api.openai.com/v1"),
                ("providers.openrouter.baseUrl", "https://openrouter.ai/api/v1"),
                ("providers.xai.baseUrl", "https://api.x.ai/v1"),
            ),
        ),
    ),
    Preset(
        "opencode",
        "opencode",
        "1.18.33",
        commands=("opencode",),
        packages=("opencode-ai",),
        config=ConfigFile(
            paths=("~/.config/opencode/opencode.json", "opencode.json", ".opencode/opencode.json"),
            keys=("provider.*.options.baseURL",),
            override="variable",
            override_variable="OPENCODE_CONFIG_CONTENT",
            defaults=(
                ("provider.anthropic.options.baseURL", "https://api.anthropic.com/v1"),
                ("provider.deepseek.options.baseURL", "https://api.deepseek.com"),
                ("provider.google.options.baseURL", "https://generativelanguage.googleapis.com/v1beta"),
                ("provider.openai.options.baseURL", "https://api.openai.com/v1"),
                ("provider.openrouter.options.baseURL", "https://openrouter.ai/api/v1"),
            ),
        ),
    ),
    Preset(
        "cline",
        "Cline",
        "3.0.65",
        commands=("cline",),
        notes=(
            "its hub stays a while after a run, and a run that finds it there calls where that one did: cline hub stop",
        ),
    ),
    Preset(
        "cursor-agent",
        "Cursor's agent",
        None,
        commands=("cursor-agent",),
        hosts=("*.cursor.sh",),
        notes=("it speaks to Cursor's own servers, in no format that wiretape knows: what it sends is recorded whole",),
    ),
    Preset(
        "aider",
        "aider",
        "0.86.2",
        commands=("aider",),
        packages=("aider-chat",),
        modules=("aider",),
        variables=(_AIOHTTP,),
        notes=("a base URL in .aider.conf.yml goes before the variables that are set here",),
    ),
    Preset(
        "goose",
        "goose",
        None,
        commands=("goose",),
        variables=(
            Variable("OPENAI_HOST", "goose's name for a base URL", route="https://api.openai.com"),
            Variable("ANTHROPIC_HOST", "goose's name for a base URL", route="https://api.anthropic.com"),
        ),
    ),
)

NODE = Preset(
    "node",
    "a Node program",
    "24",
    notes=("Node's fetch obeys the proxy variables from 22.21 on; before, a base URL must lead to wiretape",),
)
PYTHON = Preset("python", "a Python program", "3.13", variables=(_AIOHTTP,))
PROGRAM = Preset("program", "a program that wiretape does not know", None, variables=(_AIOHTTP,))

REASONS: dict[str, str] = {
    "WIRETAPE_TOOLS": "functions that `@wiretape.tool` wraps are recorded, or answered, here",
    "HTTPS_PROXY": "requests over TLS go through this port",
    "HTTP_PROXY": "plain requests go through this port",
    "ALL_PROXY": "for clients that read no other proxy variable",
    "NO_PROXY": "emptied, so that this machine's own model servers are seen",
    "NODE_USE_ENV_PROXY": "Node's fetch obeys the proxy variables only with this",
    "SSL_CERT_FILE": "trust for OpenSSL, Python's httpx, Go, Rust, Bun",
    "REQUESTS_CA_BUNDLE": "trust for Python's requests",
    "CURL_CA_BUNDLE": "trust for curl",
    "AWS_CA_BUNDLE": "trust for the AWS SDKs",
    "GIT_SSL_CAINFO": "trust for git",
    "CODEX_CA_CERTIFICATE": "trust for Codex",
    "NODE_EXTRA_CA_CERTS": "trust for Node, beside its own certificates",
    "DENO_CERT": "trust for Deno",
}
"""Why the variables are set that every program gets."""
