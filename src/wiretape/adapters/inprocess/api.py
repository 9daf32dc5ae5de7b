"""`wiretape.replay` and `wiretape.record`. What they need is imported when they are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from wiretape.adapters import arguments

if TYPE_CHECKING:
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

    `tier`: the loosest match to accept. `pace`: 0 plays at once, 1 as recorded. `on_miss`: "answer" a miss with an
    error in the provider's shape (the context raises MissError when it closes), or "raise" MissInterrupt at the call.
    `pass_hosts`: globs of hosts that requests may reach (an agent's own tools). `repeat`: play a recorded answer again
    when it was played before. `mask`: patterns for text that differs between runs, in addition to the settings.
    `faults`: faults to inject, such as "429@3". `max_age`: the greatest age of a tape (days, or "30d"), instead of the
    setting; an older tape gives a warning, or fails if `max_age_action` is "fail".
    """
    from wiretape.adapters.inprocess.context_replay import Replay, ReplayContextOptions

    options = ReplayContextOptions(
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
    return Replay(arguments.tapes(tapes), options)


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
    """Record this process's HTTP requests to a tape, and send them as usual.

    Requests to known model providers and to this machine are recorded, and to `hosts` (globs); `all`: to every host. A
    tape that exists is continued with `append` and replaced with `force`. `on_exchange` is called with each exchange
    after it was written.
    """
    from wiretape.adapters.inprocess.context_record import Record, RecordContextOptions

    options = RecordContextOptions(
        arguments.hosts("hosts", hosts),
        arguments.switch("all", all),
        arguments.switch("append", append),
        arguments.switch("force", force),
        arguments.text("note", note),
        arguments.text("provenance", provenance),
        arguments.function("on_exchange", on_exchange),
    )
    return Record(arguments.tape_path(path, "wiretape.record({})"), options)
