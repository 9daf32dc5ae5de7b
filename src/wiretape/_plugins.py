"""Loads plug-ins: the objects that installed packages register in wiretape's entry-point groups.

A kind of plug-in is loaded when it is first used. A broken plug-in is left out and named in a warning.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any


@dataclass(frozen=True, slots=True)
class PluginKind:
    """A kind of plug-in: its entry-point group, and the members that its objects need."""

    group: str
    noun: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed plug-in. `loaded` is its object; `problem` says why it cannot be used."""

    name: str
    value: str  # MODULE:OBJECT
    package: str  # the distribution and its version; empty if unknown
    loaded: Any = None
    problem: str = ""


FORMATS = PluginKind(
    "wiretape.formats",
    "wire format",
    ("name", "volatile", "claims", "claims_response", "decode", "decode_request", "error"),
)
IMPORTERS = PluginKind("wiretape.importers", "importer", ("claims", "read"))
EXPORTERS = PluginKind("wiretape.exporters", "exporter", ("export",))
LINT_RULES = PluginKind(
    "wiretape.lint_rules", "lint rule", ("id", "name", "severity", "summary", "explains", "mend", "check")
)
PRESETS = PluginKind("wiretape.presets", "preset", ("name", "title", "commands", "packages", "modules", "variables"))
KINDS = (FORMATS, IMPORTERS, EXPORTERS, LINT_RULES, PRESETS)


def installed(kind: PluginKind) -> list[Plugin]:
    """Load every installed plug-in of a kind, broken ones included."""
    return [_load(kind, point) for point in entry_points(group=kind.group)]


@cache
def usable(kind: PluginKind, taken: Collection[str] = ()) -> dict[str, Any]:
    """The objects of a kind's plug-ins by name, loaded once. Broken ones are named in a warning and left out.

    `taken`: the names of the built-in objects, which a plug-in cannot replace.
    """
    found = {}
    for plugin in installed(kind):
        problem = plugin.problem or ("has the name of a built-in one" if plugin.name in taken else "")
        if problem:
            warn(f"{kind.noun} plug-in {plugin.name} ({plugin.value}) {problem}")
        else:
            found[plugin.name] = plugin.loaded
    return found


@cache
def warn(problem: str) -> None:
    """Name a plug-in's problem on stderr, each problem once."""
    import logging  # start-up time: needed only if a plug-in is broken

    logging.getLogger("wiretape").warning("wiretape: warning: %s", " ".join(problem.split()))


def _load(kind: PluginKind, point: EntryPoint) -> Plugin:
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
    try:
        loaded = point.load()
        plugin = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        problem = f"cannot be loaded: {type(error).__name__}: {error}"
        return Plugin(point.name, point.value, package, problem=problem)
    missing = [member for member in kind.members if not hasattr(plugin, member)]
    if missing:
        return Plugin(point.name, point.value, package, problem=f"lacks {', '.join(missing)}")
    return Plugin(point.name, point.value, package, plugin)
