"""What there is to see at the start of a run, before anything has happened: all of it, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretape.debug.commands.topics import TOPICS
from wiretape.debug.replies import Part, Said
from wiretape.model.wording import plural

if TYPE_CHECKING:
    from wiretape.debug.session import Debugger


def overview(debugger: Debugger) -> tuple[Part, ...]:
    """What the tape holds, and the user's messages. What deserves a look is counted once that is known."""
    turns = TOPICS["turns"].show(debugger) if debugger.line.run.turns else ()
    return (*TOPICS["tape"].show(debugger), *_findings(debugger), *turns)


def _findings(debugger: Debugger) -> tuple[Part, ...]:
    if not debugger.judged or debugger.world.known.findings is None:
        return ()
    found = len(debugger.world.all_remarks())
    return (Said(f"{plural(found, 'finding')} about this run: info findings lists them", "bad"),) if found else ()
