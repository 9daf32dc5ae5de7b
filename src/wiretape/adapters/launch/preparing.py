"""Prepares a program for one run: variables, arguments, copies of configuration files.

The user's own files are only read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretape.adapters.launch.config_discovery import ConfiguredUrl, DiscoveredConfig, json_object, read_config
from wiretape.adapters.launch.jvm import jvm_options
from wiretape.adapters.launch.presets import REASONS, ConfigFile, Preset
from wiretape.adapters.launch.programs import Program
from wiretape.adapters.routing.base_urls import DEFAULT_BASE_URLS, user_base_urls
from wiretape.adapters.routing.routes import base_url_host, parse_base_url, without_user
from wiretape.tape.atomic import PRIVATE, rewrite

_BARE_KEY = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable or an argument that is set for this run only, and why."""

    name: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}={without_user(self.value)}"


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """How to run a program: its command line, and variables to add to its environment."""

    program: Program
    argv: tuple[str, ...]
    variables: dict[str, str]
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]


def prepare(
    argv: Sequence[str],
    config: DiscoveredConfig,
    port: int,
    variables: Mapping[str, str] | None = None,
    *,
    replaying: bool = False,
    knows: Callable[[str], bool] = lambda host: False,
    scratch: Path | None = None,
) -> PreparedProgram:
    """Add what the program's preset needs to `variables`, which every program gets.

    A replay also overrides the base URLs of configuration files. `knows` says whether a tape has calls to a host;
    `scratch` is a directory for this run.
    """
    common = dict(variables or {})
    preset = config.program.preset
    settings = list(_preset_settings(preset, config.environ, port, replaying, common))
    notes = [*config.problems, *preset.notes]
    arguments: list[str] = []
    if replaying and preset.config is not None:
        override = _ConfigOverride(preset.config, config, port, knows, scratch)
        arguments = override.arguments()
        settings += override.settings
        notes += override.notes
    changed = list(argv)
    if arguments and config.program.at is not None:
        changed[config.program.at + 1 : config.program.at + 1] = arguments
    own = {setting.name: setting.value for setting in settings if not setting.name.startswith("-")}
    return PreparedProgram(
        config.program,
        tuple(changed),
        common | own,
        (*explained(common, config), *settings),
        tuple(notes),
    )


def explained(variables: Mapping[str, str], config: DiscoveredConfig) -> list[Setting]:
    """Explain the variables that every program gets. A name in two spellings is listed in capitals only."""
    shown = {name: value for name, value in variables.items() if name.isupper() or name.upper() not in variables}
    return [Setting(name, value, _reason(name, value, config)) for name, value in shown.items()]


def _reason(name: str, value: str, config: DiscoveredConfig) -> str:
    known = REASONS.get(name.upper())
    if known is not None:
        return known
    if name in config.from_files:
        return f"the value in {config.from_files[name]}, routed through wiretape"
    if name in user_base_urls(config.environ):
        return "your own value, routed through wiretape"
    if name in DEFAULT_BASE_URLS:
        return "the provider's default, routed through wiretape"
    if value.startswith("http://127.0.0.1:"):
        return "the tape has calls to this provider"
    return "a dummy key: SDKs do not start without one, and you have set none"


def _preset_settings(
    preset: Preset, environ: Mapping[str, str], port: int, replaying: bool, common: Mapping[str, str]
) -> Iterator[Setting]:
    for variable in preset.variables:
        own = environ.get(variable.name)
        if variable.when not in ("always", "replay" if replaying else "record") or (variable.where_set and own is None):
            continue
        if variable.made:
            options = jvm_options(common, environ)
            if options:
                yield Setting(variable.name, f"{own} {options}" if own else options, variable.why)
        elif variable.route:
            url = own if own and own.strip() else variable.route
            if (parsed := parse_base_url(url)) is not None:
                yield Setting(variable.name, parsed.through(port), variable.why)
            elif replaying:  # the replay server answers for any host
                yield Setting(variable.name, f"http://127.0.0.1:{port}", variable.why)
        elif own is None:
            yield Setting(variable.name, variable.value, variable.why)


class _ConfigOverride:
    """Overrides the base URLs of a configuration with URLs under a port."""

    def __init__(
        self,
        config: ConfigFile,
        discovered: DiscoveredConfig,
        port: int,
        knows: Callable[[str], bool],
        scratch: Path | None,
    ) -> None:
        self._config = config
        self._discovered = discovered
        self._port = port
        self._scratch = scratch
        configured = {found.key for found in discovered.found}
        defaults = [ConfiguredUrl(tuple(key.split(".")), url, None) for key, url in config.defaults]
        self._found = [
            *discovered.found,
            *(one for one in defaults if one.key not in configured and knows(base_url_host(one.url))),
        ]
        self.settings: list[Setting] = []
        self.notes: list[str] = []

    def arguments(self) -> list[str]:
        """Return the arguments to insert, and collect the settings."""
        if not self._found:
            return []
        match self._config.override:
            case "flag":
                return self._flags()
            case "variable":
                self._inline()
            case "copy":
                self._copy()
        return []

    def _flags(self) -> list[str]:
        arguments: list[str] = []
        for found in self._found:
            key = ".".join(found.key)
            if not all(_BARE_KEY.fullmatch(part) for part in found.key):
                self.notes.append(f"{key} cannot be overridden on the command line: its name has special characters")
                continue
            value = f"{key}={json.dumps(_routed(found.url, self._port))}"
            arguments += ["-c", value]
            self.settings.append(Setting("-c " + key, json.dumps(_routed(found.url, self._port)), _why(found)))
        if arguments and self._discovered.program.at is None:
            self.notes.append(f"the program is inside a shell command: add {' '.join(arguments)} to it yourself")
        return arguments

    def _inline(self) -> None:
        name = self._config.override_variable
        try:
            document = json_object(self._discovered.environ.get(name) or "{}")
        except ValueError as error:
            self.notes.append(f"{name} is unchanged, its base URLs are not overridden: {error}")
            return
        self._settle(document)
        value = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        self.settings.append(Setting(name, value, _why(*self._found)))

    def _copy(self) -> None:
        source = self._discovered.config_files[0]
        if self._scratch is None:
            return
        try:
            document = read_config(source)
        except FileNotFoundError:
            document = {}
        except (OSError, ValueError):  # discover_config has reported it
            return
        target = self._scratch / source.parent.name
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        _link_all(source.parent, target, but=source.name)
        self._settle(document)
        file = target / source.name
        rewrite(file, [f"{json.dumps(document, ensure_ascii=False, indent=2)}\n".encode()], PRIVATE)
        self.settings.append(Setting(self._config.override_variable, str(target), _why(*self._found)))

    def _settle(self, document: dict[str, Any]) -> None:
        for found in self._found:
            place = document
            for part in found.key[:-1]:
                inner = place.get(part)
                place[part] = place = inner if isinstance(inner, dict) else {}
            place[found.key[-1]] = _routed(found.url, self._port)


def _why(*found: ConfiguredUrl) -> str:
    keys = ", ".join(".".join(one.key) for one in found)
    files = sorted({str(one.file) for one in found if one.file is not None})
    return f"routes {keys}" + (f" of {', '.join(files)}" if files else "") + " through wiretape"


def _routed(url: str, port: int) -> str:
    parsed = parse_base_url(url)
    assert parsed is not None, url
    return parsed.through(port)


def _link_all(source: Path, target: Path, but: str) -> None:
    """Link to all other entries of a directory. A file is copied where the system has no links."""
    if not source.is_dir():
        return
    for entry in source.iterdir():
        if entry.name == but:
            continue
        try:
            os.symlink(entry.resolve(), target / entry.name, target_is_directory=entry.is_dir())
        except OSError:
            if entry.is_file():
                shutil.copy2(entry, target / entry.name)
