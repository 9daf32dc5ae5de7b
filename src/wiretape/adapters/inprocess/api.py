"""`wiretape.record` and `wiretape.replay`: what a program calls to stand behind the doors in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wiretape.adapters.inprocess import arguments
from wiretape.adapters.inprocess.context_record import Record
from wiretape.adapters.inprocess.context_replay import Name, OnMiss, Replay, TierName
from wiretape.matching.tape_age import AgeAction, MaxAge
from wiretape.model.http import Exchange
from wiretape.tape.reading.reader import Tape


def replay(
    *tapes: Name | Tape,
    tier: TierName = "masked",
    pace: float = 0,
    on_miss: OnMiss = "answer",
    pass_hosts: str | Sequence[str] = (),
    repeat: bool = False,
    mask: str | Sequence[str] = (),
    faults: str | Sequence[str] = (),
    max_age: MaxAge | None = None,
    max_age_action: AgeAction | None = None,
) -> Replay:
    """Answer this process's HTTP requests from tapes, and open no connection.

    `tier`: how alike a request must be at least. `pace`: 0 at once, 1 as recorded. `on_miss`: "answer" a miss with an
    error of the provider's shape (MissError follows when the context closes), or "raise" MissInterrupt at the call.
    `pass_hosts`: globs of hosts that are let through (an agent's own tools). `repeat`: give a recorded answer again
    when it was played before. `mask`: patterns for what changes between runs, besides those of the settings.
    `faults`: what goes wrong at which call, such as "429@3". `max_age`: how old a tape may be (days, or "30d"), over
    what the settings say; an older one is warned of, or fails where `max_age_action` is "fail".
    """
    return Replay(
        arguments.tapes(tapes),
        tier,
        arguments.pace(pace),
        on_miss,
        arguments.hosts("pass_hosts", pass_hosts),
        arguments.switch("repeat", repeat),
        arguments.words("mask", mask, "a pattern"),
        arguments.words("faults", faults, 'a fault such as "429@3"'),
        max_age,
        max_age_action,
    )


def record(
    path: Name,
    *,
    hosts: str | Sequence[str] = (),
    all: bool = False,
    append: bool = False,
    force: bool = False,
    note: str | None = None,
    provenance: str | None = None,
    on_exchange: Callable[[Exchange], None] | None = None,
) -> Record:
    """Record this process's HTTP requests to a tape while they go on as ever.

    Known model providers and this machine are recorded, and what `hosts` (globs) adds; `all`: every host. A tape that
    exists is continued with `append` and replaced with `force`. `on_exchange` is told of each exchange that is on disk.
    """
    arguments.function("on_exchange", on_exchange)
    return Record(
        arguments.place(path, "wiretape.record({})"),
        arguments.hosts("hosts", hosts),
        arguments.switch("all", all),
        arguments.switch("append", append),
        arguments.switch("force", force),
        arguments.text("note", note),
        arguments.text("provenance", provenance),
        on_exchange,
    )
