"""Applies a preset to one run: variables, arguments, copies of configuration. The user's own files are only read."""

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
from wiretape.adapters.routing.routes import (
    DEFAULT_BASE_URLS,
    base_url_host,
    parse_base_url,
    user_base_urls,
    without_user,
)
from wiretape.tape.atomic import PRIVATE, rewrite

_BARE_KEY = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Setting:
    """Something that is set for this run only, and why: a variable, or an argument."""

    name: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}={without_user(self.value)}"


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """How to run the program. `variables` come on top of those that every program gets."""

    program: Program
    argv: tuple[str, ...]
    variables: dict[str, str]
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]


def prepare(
    argv: Sequence[str],
    around: DiscoveredConfig,
    port: int,
    *,
    replaying: bool = False,
    knows: Callable[[str], bool] = lambda host: False,
    scratch: Path | None = None,
    led: Mapping[str, str] | None = None,
) -> PreparedProgram:
    """What to run. A recorder stands in the way as a proxy, so configuration is overridden for a replay only.

    `knows` says whether a tape has heard a host; `scratch` is a directory of this run's own; `led` are the
    variables that every program gets.
    """
    preset = around.program.preset
    settings = list(_variables(preset, around.environ, port, replaying, led or {}))
    notes = [*around.problems, *preset.notes]
    arguments: list[str] = []
    if replaying and preset.config is not None:
        overriding = _Overriding(preset.config, around, port, knows, scratch)
        arguments = overriding.arguments()
        settings += overriding.settings
        notes += overriding.notes
    changed = list(argv)
    if arguments and around.program.at is not None:
        changed[around.program.at + 1 : around.program.at + 1] = arguments
    variables = {s.name: s.value for s in settings if not s.name.startswith("-")}
    return PreparedProgram(around.program, tuple(changed), variables, tuple(settings), tuple(notes))


def explained(variables: Mapping[str, str], around: DiscoveredConfig) -> list[Setting]:
    """The variables that every program gets, each with its reason. Of two spellings, the one in capitals is told."""
    told = {name: value for name, value in variables.items() if name.isupper() or name.upper() not in variables}
    return [Setting(name, value, _reason(name, value, around)) for name, value in told.items()]


def _reason(name: str, value: str, around: DiscoveredConfig) -> str:
    known = REASONS.get(name.upper())
    if known is not None:
        return known
    if name in around.from_files:
        return f"the value that {around.from_files[name]} sets, led through wiretape"
    if name in user_base_urls(around.environ):
        return "your own value, led through wiretape"
    if name in DEFAULT_BASE_URLS:
        return "the provider's default, led through wiretape"
    if value.startswith("http://127.0.0.1:"):
        return "the tape has heard this provider"
    return "SDKs do not start without one, and you have set none"


def _variables(
    preset: Preset, environ: Mapping[str, str], port: int, replaying: bool, led: Mapping[str, str]
) -> Iterator[Setting]:
    for variable in preset.variables:
        own = environ.get(variable.name)
        if variable.when not in ("always", "replay" if replaying else "record") or (variable.where_set and own is None):
            continue
        if variable.made:
            options = jvm_options(led, environ)
            if options:
                yield Setting(variable.name, f"{own} {options}" if own else options, variable.why)
        elif variable.route:
            url = own if own and own.strip() else variable.route
            if (parsed := parse_base_url(url)) is not None:
                yield Setting(variable.name, parsed.through(port), variable.why)
            elif replaying:  # the server answers for any host
                yield Setting(variable.name, f"http://127.0.0.1:{port}", variable.why)
        elif own is None:
            yield Setting(variable.name, variable.value, variable.why)


class _Overriding:
    """Leads the base URLs of a configuration to a port."""

    def __init__(
        self,
        config: ConfigFile,
        around: DiscoveredConfig,
        port: int,
        knows: Callable[[str], bool],
        scratch: Path | None,
    ) -> None:
        self._config = config
        self._around = around
        self._port = port
        self._scratch = scratch
        there = {found.key for found in around.found}
        defaults = [ConfiguredUrl(tuple(key.split(".")), url, None) for key, url in config.defaults]
        self._found = [
            *around.found,
            *(one for one in defaults if one.key not in there and knows(base_url_host(one.url))),
        ]
        self.settings: list[Setting] = []
        self.notes: list[str] = []

    def arguments(self) -> list[str]:
        """Arguments to insert; what else is needed goes to `settings`."""
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
                self.notes.append(f"{key} cannot be overridden from the command line: its name is not plain")
                continue
            value = f"{key}={json.dumps(_routed(found.url, self._port))}"
            arguments += ["-c", value]
            self.settings.append(Setting("-c " + key, json.dumps(_routed(found.url, self._port)), _why(found)))
        if arguments and self._around.program.at is None:
            self.notes.append(f"the program stands inside a shell's command: add {' '.join(arguments)} to it by hand")
        return arguments

    def _inline(self) -> None:
        name = self._config.override_variable
        try:
            document = json_object(self._around.environ.get(name) or "{}")
        except ValueError as error:
            self.notes.append(f"{name} is left as it is, base URLs are not led here: {error}")
            return
        self._settle(document)
        value = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        self.settings.append(Setting(name, value, _why(*self._found)))

    def _copy(self) -> None:
        source = self._around.config_files[0]
        if self._scratch is None:
            return
        try:
            document = read_config(source)
        except FileNotFoundError:
            document = {}
        except (OSError, ValueError):  # which is said already
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
    return f"leads {keys}" + (f" of {', '.join(files)}" if files else "") + " to wiretape"


def _routed(url: str, port: int) -> str:
    parsed = parse_base_url(url)
    assert parsed is not None, url
    return parsed.through(port)


def _link_all(source: Path, target: Path, but: str) -> None:
    """Everything else of a directory, as it is: links where the system has them, copies of files where not."""
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
