"""The command that tells the story of the prompt cache: of the call here, among those of its thread."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from wiretape.debug.commands.table import Command
from wiretape.debug.figures import short
from wiretape.debug.replies import Column, Listing, Reply, Row, Said
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.debug.session import Debugger


def _cache(debugger: Debugger, rest: str) -> Reply:
    if rest:
        raise UsageError(f"cache takes no argument: goto {rest} first, it is about the call where the run stands")
    here = debugger.world.number(debugger.selected)
    thread = debugger.line.run.threads[debugger.line.step(here).thread]
    calls = [number for number in thread.calls if debugger.line.has(number)] or [here]
    before = debugger.line.thread_before(calls[0])  # the call that the thread forked from
    rows = [_row(debugger, number, here) for number in ([before] if before is not None else []) + calls]
    columns = (Column("call", True), Column("input", True), Column("cached", True), Column("hit", True))
    verdict = debugger.world.cache_verdict(here)
    broken = verdict is not None and verdict.word == "broken"
    more = f"wiretape cache {shlex.quote(debugger.world.known.name)}"
    more += f" --call {here} shows both texts at the break" if broken else " shows all calls"
    table = Listing((*columns, Column("cache", wide=True)), tuple(rows))
    return Reply(parts=(table, *((Said(more, "dim"),) if debugger.live is None else ())))


def _row(debugger: Debugger, number: int, here: int) -> Row:
    usage, verdict = debugger.line.step(number).call.usage, debugger.world.cache_verdict(number)
    total, cached = (usage.input, usage.cached) if usage is not None else (None, None)
    hit = "?" if cached is None or not total else f"{cached / total:.0%}"
    word = verdict.word.replace("_", " ") if verdict is not None else "unknown"
    below = (verdict.text,) if verdict is not None and number == here else ()
    return Row((str(number), short(total), short(cached), hit, word), here=number == here, below=below)


COMMANDS = (
    Command(
        "cache", "looking", "what the prompt cache served of this call, and why not more", _cache, (), "",
        "Listed are the calls of its thread; under this one stands why. context shows which messages it served.",
        ("cache",),
    ),
)  # fmt: skip
