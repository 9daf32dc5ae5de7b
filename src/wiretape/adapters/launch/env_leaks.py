"""What is known, before a program runs, to go past wiretape, which leads a program by the variables of its environment.

Launchers that hand their environment on to nobody are data here; languages whose clients read no proxy variable have
it in their preset, and an old Node is asked for its version.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wiretape.adapters.launch.programs import command_name, commands, find_program

_ITS_OWN: Final = "what it asks of an address of its own goes to the real host"
_ALL: Final = "what the program asks goes to the real host"


@dataclass(frozen=True, slots=True)
class Past:
    """`next` is what to do about it. `all_of_it`: base URLs are lost, too."""

    said: str
    next: str
    all_of_it: bool = True

    def __str__(self) -> str:
        return f"{self.said} ({self.next}): {_ALL if self.all_of_it else _ITS_OWN}"


@dataclass(frozen=True, slots=True)
class _Loser:
    """`only`: it loses them with one of these words; `unless`: it keeps them with one that begins so, a pattern."""

    said: str
    next: str
    only: frozenset[str] = frozenset()
    unless: str = ""

    def loses(self, words: Sequence[str]) -> bool:
        """`words` stand behind the launcher's name, as far as the program that it launches, where that is known."""
        if self.only and self.only.isdisjoint(words):
            return False
        return not (self.unless and any(re.match(self.unless, word) for word in words))


_INSIDE: Final = "run wiretape in there, or hand its variables on: docs/clients.md"
_RUN: Final = frozenset({"run", "exec", "start", "up"})
_HANDED_ON: Final = "-e|--env"  # whoever names variables knows that they are lost otherwise
_CONTAINER: Final = _Loser("a container has an environment of its own, and a loopback", _INSIDE, _RUN, _HANDED_ON)
_LOSERS: Final[dict[str, _Loser]] = {
    "sudo": _Loser(
        "sudo drops the variables that lead here", "sudo -E keeps them", unless="-[AbHikKnPsS]*E|--preserve-env"
    ),
    "doas": _Loser("doas drops the variables that lead here", "run wiretape itself with doas"),
    "su": _Loser(
        "su - drops the variables that lead here", "su without - keeps them", frozenset({"-", "-l", "--login"})
    ),
    "env": _Loser(
        "env -i drops the variables that lead here",
        "leave -i out, or put env -i in front of wiretape",
        frozenset({"-i", "-", "--ignore-environment"}),
    ),
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose"), _CONTAINER),
    "kubectl": _CONTAINER,
    "ssh": _Loser("another machine has an environment of its own, and a loopback", _INSIDE),
    "tmux": _Loser(
        "a tmux that runs already keeps the environment of its start", "tmux -L wiretape starts another", unless="-L"
    ),
    "systemd-run": _Loser(
        "systemd-run has an environment of its own", "systemd-run --scope keeps it", unless="-E|--setenv|--sc"
    ),
}


def going_past(argv: Sequence[str], environ: Mapping[str, str]) -> Iterator[Past]:
    """Nothing where nothing is known to go past."""
    if not argv:
        return
    for words in commands(argv):
        loser = _LOSERS.get(command_name(words[0]))
        if loser is not None and loser.loses(words[1:]):
            yield Past(loser.said, loser.next)
    preset = find_program(argv).preset
    if preset.past:
        yield Past(preset.past, "a base URL leads here", all_of_it=False)
    if Path(argv[0]).name == "node":
        yield from _old_node(environ)


def _old_node(environ: Mapping[str, str]) -> Iterator[Past]:
    found = shutil.which("node", path=environ.get("PATH"))
    if found is None:
        return
    from wiretape.adapters.doctor.program_checks import node_check

    check = node_check(found)
    if check.level == "warn":
        yield Past(check.said, check.next or "", all_of_it=False)
