"""Finds the base URLs that a program will read from its .env files and its configuration.

They count as values that the user has set, so that no default replaces them. Files are only read.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretape.adapters.launch.presets import ConfigFile
from wiretape.adapters.launch.programs import Program, find_program
from wiretape.adapters.routing.base_urls import same_provider, unroutable_base_urls, user_base_urls
from wiretape.adapters.routing.routes import base_url_host, parse_base_url

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(\s*[}\]])")
_ENV_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=(.*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ConfiguredUrl:
    """A base URL in a program's configuration, and its key path."""

    key: tuple[str, ...]
    url: str
    file: Path | None  # None: a default of the program


@dataclass(frozen=True, slots=True)
class DiscoveredConfig:
    """A program, and the base URLs in its environment, its .env files and its configuration."""

    program: Program
    environ: dict[str, str]  # with the base-URL variables of .env files
    given: frozenset[str]  # base-URL variables of the environment itself
    from_files: dict[str, Path]  # variables of .env files, and the file of each
    config_files: tuple[Path, ...]  # possible paths of its configuration
    found: tuple[ConfiguredUrl, ...]  # base URLs in these files
    problems: tuple[str, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts to record besides the known providers."""
        urls = [*(found.url for found in self.found), *(self.environ[name] for name in self.from_files)]
        return (*self.program.preset.hosts, *(host for url in urls if (host := base_url_host(url))))

    def without_file_variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Drop variables that .env files set: in a recording, the program reads these files itself.

        Its requests then go through the proxy port.
        """
        left = {other for name in self.from_files for other in same_provider(name)} - set(self.given)
        return {name: value for name, value in variables.items() if name not in left}


def discover_config(argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> DiscoveredConfig:
    """Find the program of a command line, and its base URLs."""
    program = find_program(argv)
    values, origins = _env_files(program, argv, environ, cwd)
    config = program.preset.config
    files = tuple(_config_paths(config, environ, cwd)) if config is not None else ()
    problems: list[str] = []
    found = tuple(_base_urls(config, files, problems)) if config is not None else ()
    return DiscoveredConfig(
        program, {**values, **environ}, frozenset(user_base_urls(environ)), origins, files, found, tuple(problems)
    )


def _env_files(
    program: Program, argv: Sequence[str], environ: Mapping[str, str], cwd: Path
) -> tuple[dict[str, str], dict[str, Path]]:
    """Return base-URL variables of the .env files that the program may read. The environment takes precedence."""
    values: dict[str, str] = {}
    origins: dict[str, Path] = {}
    for path in _env_paths(program, argv, environ, cwd):
        found = _env_file(path)
        for name, value in {**user_base_urls(found), **unroutable_base_urls(found)}.items():
            if name not in environ and name not in values:
                values[name], origins[name] = value, path
    return values, origins


def _env_paths(program: Program, argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> Iterator[Path]:
    named = [_expanded(name, environ, cwd) for name in program.preset.env_files]
    yield from (path for path in named if path.is_relative_to(cwd))
    starts = [cwd]
    if program.at is not None and _is_file(script := cwd / argv[program.at]):
        starts.append(script.resolve().parent)
    for start in starts:
        yield start / ".env.local"
        nearest = next((path for d in (start, *start.parents) if _is_file(path := d / ".env")), None)
        if nearest is not None:
            yield nearest
    yield from (path for path in named if not path.is_relative_to(cwd))


def _env_file(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    values = {}
    for line in text.splitlines():
        match = _ENV_LINE.fullmatch(line)
        if match is not None:
            values[match[1]] = _unquoted(match[2].strip())
    return values


def _unquoted(value: str) -> str:
    if value[:1] in ("'", '"') and value.find(value[0], 1) > 0:
        return value[1 : value.index(value[0], 1)]
    return re.sub(r"\s+#.*", "", value)


def _base_urls(config: ConfigFile, files: Sequence[Path], problems: list[str]) -> Iterator[ConfiguredUrl]:
    """Yield every base URL that a program's configuration sets. The last file that sets a key wins."""
    found: dict[tuple[str, ...], ConfiguredUrl] = {}
    for path in files:
        if not _is_file(path):
            continue
        try:
            document = read_config(path)
        except (OSError, ValueError) as error:
            problems.append(f"cannot read the base URLs of {path}: {error}")
            continue
        for pattern in config.keys:
            for key, value in _at(document, tuple(pattern.split("."))):
                if parse_base_url(value) is not None:
                    found[key] = ConfiguredUrl(key, value, path)
                elif value.strip():
                    problems.append(f"{path}: {'.'.join(key)} is not an http:// or https:// URL with a host")
    yield from found.values()


def _config_paths(config: ConfigFile, environ: Mapping[str, str], cwd: Path) -> list[Path]:
    own = environ.get(config.directory_variable) if config.directory_variable else None
    paths = []
    for name in config.paths:
        in_directory = own and name.startswith("~")
        paths.append(Path(own, Path(name).name) if own and in_directory else _expanded(name, environ, cwd))
    return paths


def _expanded(name: str, environ: Mapping[str, str], cwd: Path) -> Path:
    if name.startswith("~/"):
        return Path(environ.get("HOME") or Path.home()) / name[2:]
    return cwd / name


def read_config(path: Path) -> dict[str, Any]:
    """Read a TOML or JSON file. Raises OSError or ValueError."""
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json_object(text)


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object; comments and trailing commas are allowed. Raises ValueError."""
    try:
        document: Any = json.loads(text)
    except ValueError:
        bare = _COMMENT.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
        document = json.loads(_LAST_COMMA.sub(lambda match: match[1] or match[0], bare))
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    return document


def _is_file(path: Path) -> bool:
    """False also if a directory is not readable, or the path is not valid."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _at(value: Any, pattern: tuple[str, ...], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if not pattern:
        if isinstance(value, str):
            yield path, value
        return
    if isinstance(value, dict):
        names = list(value) if pattern[0] == "*" else [pattern[0]]
        for name in names:
            if name in value:
                yield from _at(value[name], pattern[1:], (*path, name))
