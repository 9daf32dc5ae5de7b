"""What well-known programs need so that a recorder or a replay server is in front of their models. Data only.

A preset is one entry of PRESETS. Proxy, certificate and base-URL variables are set for every program (child.py,
trust.py, routes.py); a preset holds what comes on top. `programs.py` finds the preset of a command line,
`preparing.py` applies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

When: TypeAlias = Literal["always", "record", "replay"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable to set. The user's own value goes first. A fixed `value`, a `route` for that URL, or what is `made`
    for the run: `jvm` are a Java virtual machine's options, which go behind the user's own. `where_set`: only for
    a user who has it set, were it to nothing.
    """

    name: str
    why: str
    value: str = ""
    route: str = ""
    made: Literal["", "jvm"] = ""
    where_set: bool = False
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
    past: str = ""  # what in it obeys no proxy variable, whatever its version
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
            Variable(
                "UV_THREADPOOL_SIZE",
                "its skills stand in its prompt as its threads find them: with one thread, always in one order",
                value="1",
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

_LWP = Variable("PERL_LWP_ENV_PROXY", "Perl's LWP reads the proxy variables only with this", value="1")
NODE = Preset(
    "node",
    "a Node program",
    "24",
    notes=("Node's fetch obeys the proxy variables from 22.21 on; before, a base URL must lead to wiretape",),
)
PYTHON = Preset("python", "a Python program", "3.13", variables=(_AIOHTTP,))
_JVM = Variable(
    "JAVA_TOOL_OPTIONS", "a JVM reads no proxy variable and trusts a store of its own", made="jvm", where_set=True
)
PROGRAM = Preset("program", "a program that wiretape does not know", None, variables=(_AIOHTTP, _LWP, _JVM))

JVM = Preset(
    "java",
    "a program on the Java virtual machine",
    "17",
    commands=(
        *("javaw", "jshell", "mvn", "mvnw", "mvnd", "gradle", "gradlew", "ant", "sbt", "lein", "jbang"),
        *("kotlin", "kotlinc", "scala", "scala-cli", "groovy", "clojure", "clj"),
    ),
    variables=(replace(_JVM, where_set=False),),
    notes=(
        (
            'each JVM says "Picked up JAVA_TOOL_OPTIONS: …" on stderr, with a port that differs from run to run; an '
            "agent that shows its model what its JVMs print needs mask = ['proxyPort=\\d+']"
        ),
        "a JVM that was started before (a daemon of Gradle or Maven) goes past: gradle --no-daemon, mvn for mvnd",
        "a client that sets a proxy or a trust store in its code, or by -D, goes by those",
    ),
)
PHP = Preset(
    "php",
    "a PHP program",
    "8.2",
    commands=("composer", "artisan", "phpunit"),
    notes=(
        (
            "curl's functions, and Guzzle on them, obey the proxy variables; fopen, file_get_contents and Symfony's "
            "NativeHttpClient do not: give these a base URL"
        ),
    ),
)
PERL = Preset("perl", "a Perl program", "5.36", commands=("prove",), variables=(_LWP,))
RUBY = Preset(
    "ruby",
    "a Ruby program",
    "3.1",
    commands=("rake", "rails", "rspec", "irb"),
    notes=("Net::HTTP sends no request for this machine through a proxy: a model server here needs a base URL",),
)
R = Preset(
    "r",
    "an R program",
    "4.2",
    commands=("R",),
    notes=(
        (
            "libcurl, on which httr, httr2 and ellmer are built, reads no variable for certificates: "
            "httr::set_config(httr::config(cainfo = Sys.getenv('CURL_CA_BUNDLE'))), or a base URL"
        ),
    ),
)
ERLANG = Preset(
    "erlang",
    "a program on Erlang's virtual machine",
    "25",
    commands=("erl", "escript", "rebar3", "elixir", "iex", "mix"),
    past="Erlang's httpc, and Elixir's Mint, Finch and Req, obey no proxy variable",
)
WGET = Preset(
    "wget",
    "wget",
    "1.21",
    commands=("wget",),
    notes=('with GnuTLS it reads no variable for certificates: wget --ca-certificate="$SSL_CERT_FILE"',),
)
LANGUAGES: tuple[Preset, ...] = (NODE, PYTHON, JVM, PHP, PERL, RUBY, R, ERLANG, WGET)
"""What is known of a program by the language that it is written in, where it is none of PRESETS."""

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
    "PERL_LWP_SSL_CA_FILE": "trust for Perl's LWP",
    "PHP_INI_SCAN_DIR": "trust for PHP, beside its other settings",
    "NODE_EXTRA_CA_CERTS": "trust for Node, beside its own certificates",
    "DENO_CERT": "trust for Deno",
}
"""Why the variables are set that every program gets."""
