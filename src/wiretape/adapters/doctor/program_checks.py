"""Checks of `wiretape doctor -- CMD`: the program, its preset, its interpreter, and its settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from wiretape.adapters.doctor.checks import LIBRARIES, library_check
from wiretape.adapters.launch.child import find_command, proxy_variables
from wiretape.adapters.launch.config_discovery import DiscoveredConfig, discover_config
from wiretape.adapters.launch.env_leaks import NODE_WITH_PROXY, env_leaks, node_version, old_node, output_of
from wiretape.adapters.launch.preparing import Setting, prepare
from wiretape.adapters.launch.presets import NODE, PYTHON, Preset
from wiretape.adapters.launch.programs import command_name
from wiretape.adapters.launch.trust import ADDING, PHP_SETTINGS, REPLACING
from wiretape.adapters.routing.base_urls import base_url_variables
from wiretape.adapters.routing.routes import without_user
from wiretape.adapters.routing.tool_route import tool_variables
from wiretape.errors import WiretapeError
from wiretape.views.doctor import Check

PORT = 0
"""A placeholder for the port, because no port is open yet."""

_ASK_PYTHON = """
import importlib.metadata as m, sys
print("Python", ".".join(map(str, sys.version_info[:3])))
for name in sys.argv[1:]:
    try: print(name, m.version(name))
    except m.PackageNotFoundError: pass
"""


def program_checks(argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> Iterator[Check]:
    """Check a command line, and whether it can run."""
    try:
        found = find_command(argv, environ)
    except WiretapeError as error:
        yield Check(level="fail", what="program", said=str(error), next="check its name and the PATH")
        found = None
    around = discover_config(argv, environ, cwd)
    yield _preset_check(around.program.preset)
    yield from (Check(level="warn", what="configuration", said=problem) for problem in around.problems)
    for one in around.found:
        set_there = f"{'.'.join(one.key)} = {without_user(one.url)} ({one.file})"
        said = f"{set_there}: recorded through the proxy port, overridden in a replay"
        yield Check(level="ok", what="configuration", said=said)
    for name, path in around.from_files.items():
        set_there = f"{path} sets {name}={without_user(around.environ[name])}"
        said = f"{set_there}: read by the program in a recording, set in a replay"
        yield Check(level="ok", what="configuration", said=said)
    for leak in env_leaks(argv, environ):
        yield Check(level="warn", what="environment", said=leak.reason, next=leak.fix)
    if found is not None:
        yield from _interpreter_checks(argv, found, around)


def would_set(argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> tuple[list[Setting], tuple[str, ...]]:
    """Return what `wiretape record` would set, with placeholders for port and certificate file; and notes."""
    around = discover_config(argv, environ, cwd)
    trust = dict.fromkeys((*REPLACING, *ADDING, PHP_SETTINGS), "…")
    tools = tool_variables("record", PORT)
    variables = {**proxy_variables(PORT), **base_url_variables(environ, PORT), **trust, **tools}
    prepared = prepare(argv, around, PORT, around.without_file_variables(variables))
    shown = [Setting(one.name, _with_port_named(one.value), one.why) for one in prepared.settings]
    return shown, tuple(note for note in prepared.notes if note not in around.problems)


def _with_port_named(value: str) -> str:
    return value.replace(f"127.0.0.1:{PORT}", "127.0.0.1:PORT").replace(f"proxyPort={PORT}", "proxyPort=PORT")


def _preset_check(preset: Preset) -> Check:
    if preset.verified is None:
        return Check(level="warn", what="preset", said=f"{preset.title}: not tested with wiretape")
    return Check(level="ok", what="preset", said=f"{preset.title}, tested with version {preset.verified}")


def _interpreter_checks(argv: Sequence[str], found: str, around: DiscoveredConfig) -> Iterator[Check]:
    name = command_name(argv[0])
    if re.fullmatch(r"python[0-9.]*", name):
        yield python_libraries(found)
    elif around.program.preset is PYTHON:
        yield library_check()
    if name == "node":
        yield node_check(found)
    elif around.program.preset is NODE:
        yield Check(level="ok", what="Node", said="the command line does not show its version; 22.21 is needed")


def python_libraries(python: str) -> Check:
    """List the SDKs of the Python that will run the program, which may be another than wiretape's."""
    answer = output_of([python, "-c", _ASK_PYTHON, *LIBRARIES])
    if answer is None:
        return Check(level="fail", what="libraries", said=f"{python} does not run", next="check that interpreter")
    return Check(level="ok", what="libraries", said=", ".join(answer.splitlines()))


def node_check(node: str) -> Check:
    """Whether the fetch of a Node reads proxy variables."""
    version = node_version(node)
    if version is None:
        return Check(level="fail", what="Node", said=f"{node} --version prints none", next="check that interpreter")
    if version < NODE_WITH_PROXY:
        leak = old_node(version)
        return Check(level="warn", what="Node", said=leak.reason, next=leak.fix)
    return Check(level="ok", what="Node", said=f"{'.'.join(map(str, version))}: its fetch reads proxy variables")
