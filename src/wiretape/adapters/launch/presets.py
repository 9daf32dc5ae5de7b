"""Settings of well-known programs, in addition to the variables that every program gets. Data only.

PRESETS are agents; LANGUAGES are the runtimes of other programs. `programs.py` finds the preset of a command line, and
`preparing.py` applies it. Proxy, certificate and base-URL variables are set for every program (`child.py`, `trust.py`,
`routing/base_urls.py`).

To add a client: copy the entry that is nearest to it, record and replay the client once, and put the version that you
ran into `verified`. `tests/clients` runs the clients that can be installed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

When: TypeAlias = Literal["always", "record", "replay"]


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable: exactly one of `value`, `route` and `made` defines its value.

    A value that the user has set takes precedence; the options of `made` are appended to it.
    """

    name: str
    why: str
    value: str = ""  # this text
    route: str = ""  # this base URL, routed through wiretape's port
    made: Literal["", "jvm"] = ""  # computed for each run: the options of a Java virtual machine
    where_set: bool = False  # only if the user has set the variable; an empty value is enough
    when: When = "always"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file with base URLs, and how a replay overrides them without changing the file.

    `override` is one of
    - `flag`: insert `-c KEY=VALUE` after the program's name;
    - `variable`: put JSON into `override_variable`;
    - `copy`: point `override_variable` at a copy of the file's directory, which links to all its other files.
    """

    paths: tuple[str, ...]  # relative to the working directory, or under `~`
    keys: tuple[str, ...]  # dotted; `*` matches any name
    override: Literal["flag", "variable", "copy"]
    override_variable: str = ""
    directory_variable: str = ""  # the variable that moves the directory of the paths under `~`
    defaults: tuple[tuple[str, str], ...] = ()  # keys and URLs to override even if no file sets them


@dataclass(frozen=True, slots=True)
class Preset:
    """A client or a language: how its command lines look, and what it needs."""

    name: str
    title: str
    verified: str | None  # the version that was recorded and replayed; None: known from its documentation only
    commands: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()  # on npm or PyPI: `npx PACKAGE`, or a part of a script's path
    modules: tuple[str, ...] = ()  # `python -m MODULE`
    suffixes: tuple[str, ...] = ()  # of files that the language runs
    variables: tuple[Variable, ...] = ()
    config: ConfigFile | None = None
    env_files: tuple[str, ...] = ()  # files of variables that the program reads in addition to .env
    hosts: tuple[str, ...] = ()  # to record in addition to the known providers
    ignores_proxy: str = ""  # which of its HTTP clients ignore proxy variables
    notes: tuple[str, ...] = ()


_AIOHTTP = Variable("AIOHTTP_TRUST_ENV", "makes litellm's asynchronous calls read the proxy variables", value="True")

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
            "base URLs under `env` in its settings.json take precedence over these variables",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC changes its prompt and tools: set it in both runs or in neither",
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
        notes=("it reads base URLs from its configuration only, never from variables",),
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
                "the model's address after a login with a Google account",
                route="https://cloudcode-pa.googleapis.com",
                when="replay",
            ),
            Variable(
                "UV_THREADPOOL_SIZE",
                "its prompt lists skills in the order in which its threads find them; one thread keeps it stable",
                value="1",
            ),
        ),
        env_files=(".gemini/.env", "~/.gemini/.env", "~/.env"),
        notes=("a login with a Google account is renewed at oauth2.googleapis.com, which a replay blocks",),
    ),
    Preset(
        "qwen",
        "Qwen Code",
        "0.24.4",
        commands=("qwen",),
        packages=("@qwen-code/qwen-code",),
        env_files=(".qwen/.env", "~/.qwen/.env", "~/.env"),
        notes=("base URLs in its settings.json may take precedence over these variables",),
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
        notes=("its hub outlives a run and keeps the addresses of that run; stop it between runs: cline hub stop",),
    ),
    Preset(
        "cursor-agent",
        "Cursor's agent",
        None,
        commands=("cursor-agent",),
        hosts=("*.cursor.sh",),
        notes=("it calls Cursor's own servers in an unknown format: requests are recorded but not decoded",),
    ),
    Preset(
        "aider",
        "aider",
        "0.86.2",
        commands=("aider",),
        packages=("aider-chat",),
        modules=("aider",),
        variables=(_AIOHTTP,),
        notes=("a base URL in .aider.conf.yml takes precedence over these variables",),
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

_LWP = Variable("PERL_LWP_ENV_PROXY", "makes Perl's LWP read the proxy variables", value="1")
NODE = Preset(
    "node",
    "a Node program",
    "24",
    suffixes=(".js", ".mjs", ".cjs", ".ts"),
    notes=("Node's fetch reads the proxy variables from version 22.21 on; older versions need a base URL",),
)
PYTHON = Preset("python", "a Python program", "3.13", suffixes=(".py",), variables=(_AIOHTTP,))
_JVM = Variable(
    "JAVA_TOOL_OPTIONS", "a JVM ignores proxy variables and has its own trust store", made="jvm", where_set=True
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
    suffixes=(".jar", ".java", ".kts"),
    variables=(replace(_JVM, where_set=False),),
    notes=(
        (
            'each JVM prints "Picked up JAVA_TOOL_OPTIONS: …" on stderr, with a port that differs from run to run; if '
            "your agent sends that output to its model, set mask = ['proxyPort=\\d+']"
        ),
        "a JVM that is already running (a Gradle or Maven daemon) bypasses wiretape: gradle --no-daemon, mvn for mvnd",
        "a proxy or a trust store that is set in code, or with -D, takes precedence",
    ),
)
PHP = Preset(
    "php",
    "a PHP program",
    "8.2",
    commands=("composer", "artisan", "phpunit"),
    suffixes=(".php",),
    notes=(
        (
            "PHP's curl functions, and Guzzle, read the proxy variables; fopen, file_get_contents and Symfony's "
            "NativeHttpClient ignore them: set a base URL for these"
        ),
    ),
)
PERL = Preset("perl", "a Perl program", "5.36", commands=("prove",), suffixes=(".pl",), variables=(_LWP,))
RUBY = Preset(
    "ruby",
    "a Ruby program",
    "3.1",
    commands=("rake", "rails", "rspec", "irb"),
    suffixes=(".rb",),
    notes=("Net::HTTP never uses a proxy for this machine: set a base URL for a model server here",),
)
R = Preset(
    "r",
    "an R program",
    "4.2",
    commands=("R",),
    suffixes=(".R",),
    notes=(
        (
            "libcurl, below httr, httr2 and ellmer, ignores certificate variables: call "
            "httr::set_config(httr::config(cainfo = Sys.getenv('CURL_CA_BUNDLE'))), or set a base URL"
        ),
    ),
)
ERLANG = Preset(
    "erlang",
    "a program on Erlang's virtual machine",
    "25",
    commands=("erl", "escript", "rebar3", "elixir", "iex", "mix"),
    ignores_proxy="Erlang's httpc, and Elixir's Mint, Finch and Req, ignore proxy variables",
)
WGET = Preset(
    "wget",
    "wget",
    "1.21",
    commands=("wget",),
    notes=('wget with GnuTLS ignores certificate variables: wget --ca-certificate="$SSL_CERT_FILE"',),
)
LANGUAGES: tuple[Preset, ...] = (NODE, PYTHON, JVM, PHP, PERL, RUBY, R, ERLANG, WGET)
"""Presets of programs that match no entry of PRESETS, by their language."""

REASONS: dict[str, str] = {
    "WIRETAPE_TOOLS": "records or answers functions wrapped with `@wiretape.tool`",
    "HTTPS_PROXY": "routes HTTPS requests through this port",
    "HTTP_PROXY": "routes HTTP requests through this port",
    "ALL_PROXY": "for clients that read only this proxy variable",
    "NO_PROXY": "emptied, so that model servers on this machine are recorded, too",
    "NODE_USE_ENV_PROXY": "makes Node's fetch read the proxy variables",
    "SSL_CERT_FILE": "trust for OpenSSL, Python's httpx, Go, Rust, Bun",
    "REQUESTS_CA_BUNDLE": "trust for Python's requests",
    "CURL_CA_BUNDLE": "trust for curl",
    "AWS_CA_BUNDLE": "trust for the AWS SDKs",
    "GIT_SSL_CAINFO": "trust for git",
    "CODEX_CA_CERTIFICATE": "trust for Codex",
    "PERL_LWP_SSL_CA_FILE": "trust for Perl's LWP",
    "PHP_INI_SCAN_DIR": "trust for PHP, in addition to its other settings",
    "NODE_EXTRA_CA_CERTS": "trust for Node, in addition to its own certificates",
    "DENO_CERT": "trust for Deno",
}
"""Why each variable is set that every program gets."""
