"""Detects launchers and runtimes that ignore or drop the environment variables that wiretape sets.

`launchers.py` lists the launchers, and `presets.py` the languages whose HTTP clients ignore proxy variables. Node is
asked for its version, because old versions ignore them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wiretape.adapters.launch.launchers import LAUNCHERS
from wiretape.adapters.launch.programs import command_name, commands, find_program

NODE_WITH_PROXY: Final = (22, 21)  # the first version whose fetch reads NODE_USE_ENV_PROXY
_VERSION_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class EnvLeak:
    """Why requests of a program can bypass wiretape, and the fix. `all_requests`: base-URL variables are lost, too."""

    reason: str
    fix: str
    all_requests: bool = True

    def __str__(self) -> str:
        which = "all its requests" if self.all_requests else "its requests to other addresses"
        return f"{self.reason} ({self.fix}): {which} go to the real host"


def env_leaks(argv: Sequence[str], environ: Mapping[str, str]) -> Iterator[EnvLeak]:
    """Yield the known reasons why a command line bypasses wiretape."""
    if not argv:
        return
    for words in commands(argv):
        launcher = LAUNCHERS.get(command_name(words[0]))
        if launcher is not None and launcher.drop is not None and launcher.drop.applies(words[1:]):
            yield EnvLeak(launcher.drop.reason, launcher.drop.fix)
    preset = find_program(argv).preset
    if preset.ignores_proxy:
        yield EnvLeak(preset.ignores_proxy, "set a base URL", all_requests=False)
    if Path(argv[0]).name == "node" and (node := shutil.which("node", path=environ.get("PATH"))) is not None:
        version = node_version(node)
        if version is not None and version < NODE_WITH_PROXY:
            yield old_node(version)


def old_node(version: tuple[int, ...]) -> EnvLeak:
    """Return the leak of a Node whose fetch ignores proxy variables."""
    shown = ".".join(map(str, version))
    return EnvLeak(
        f"the fetch of Node {shown} ignores proxy variables (22.21 reads them)",
        "use a newer Node, or a client that reads a base URL",
        all_requests=False,
    )


def node_version(node: str) -> tuple[int, ...] | None:
    """Return the version that `node --version` prints, or None if it prints none."""
    match = re.match(r"v(\d+)\.(\d+)(?:\.(\d+))?", output_of([node, "--version"]) or "")
    return tuple(int(part) for part in match.groups() if part is not None) if match is not None else None


def output_of(argv: Sequence[str]) -> str | None:
    """Return what a command prints, or None if it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
