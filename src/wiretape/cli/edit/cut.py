"""`wiretape cut`: write part of a tape as a new tape."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import say
from wiretape.cli.editing import OUT_IS_OUTPUT, milliseconds, numbers, refuse_existing, warn
from wiretape.cli.shared_options import force_option
from wiretape.cli.tapes import partial_option, read_whole
from wiretape.errors import UsageError
from wiretape.model.wording import listed

if TYPE_CHECKING:
    from wiretape.model.http import Exchange
    from wiretape.tape.reading.reader import Tape


@click.command("cut", context_settings=OUT_IS_OUTPUT)
@click.argument("tape", type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, type=click.Path(path_type=Path), help="The tape to write.")
@click.option("--exchanges", metavar="RANGES", help="Exchanges by number, such as 1-5,8.")
@click.option("--calls", metavar="RANGES", help="Model calls by number, such as 1-3.")
@click.option("--from", "since", metavar="TIME", help="Exchanges that started at this time or later, such as 1m30s.")
@click.option("--to", "until", metavar="TIME", help="Exchanges that started before this time.")
@force_option()
@partial_option
def command(
    tape: Path,
    out: Path,
    exchanges: str | None,
    calls: str | None,
    since: str | None,
    until: str | None,
    force: bool,
) -> None:
    """Write part of a tape as a new tape.

    Exchanges and calls that are named are both taken; --from and --to (times since the tape's start) narrow them, or
    select by themselves. Exchanges keep their numbers and times.
    """
    from wiretape.adapters.settings import load_settings, redactor_of
    from wiretape.tape.editing.edit import cut_tape

    if not (exchanges or calls or since or until):
        raise UsageError("say what to keep: --exchanges 1-5,8, --calls 1-3, --from 1m or --to 2m30s")
    first = milliseconds(since, "--from") if since else 0
    end = milliseconds(until, "--to") if until else None
    named = numbers(exchanges, "--exchanges") if exchanges else None
    wanted = numbers(calls, "--calls") if calls else None
    refuse_existing(out, force)
    whole = read_whole(tape)
    if named is not None:
        _check(named, (e.number for e in whole.exchanges), "exchange", tape)
    if wanted is not None:
        named = (named or set()) | _exchanges_of(whole, wanted, tape)

    def keep(exchange: Exchange) -> bool:
        in_time = first <= exchange.at and (end is None or exchange.at < end)
        return in_time and (named is None or exchange.number in named)

    edited = cut_tape(whole, out, keep, redactor_of(load_settings(Path.cwd())))
    warn(edited)
    say(f"{edited.exchanges} of {len(whole.exchanges)} exchanges written to {out}")


def _exchanges_of(tape: Tape, wanted: set[int], path: Path) -> set[int]:
    """The exchanges in which calls were made. A WebSocket may carry other calls as well: it is one exchange."""
    from wiretape.wire.registry import decode

    calls = decode(tape.exchanges)
    _check(wanted, (call.number for call in calls), "call", path)
    found = {call.exchange for call in calls if call.number in wanted}
    besides = sorted(call.number for call in calls if call.exchange in found and call.number not in wanted)
    if besides:
        also = listed(besides, 10)
        say(f"notice: calls {also} share a WebSocket with those asked for and come along")
    return found


def _check(wanted: set[int], there: Iterable[int], what: str, path: Path) -> None:
    known = set(there)
    if not known:
        raise UsageError(f"{path}: has no {what}s")
    if missing := sorted(wanted - known):
        raise UsageError(f"{path}: has no {what} {missing[0]}; its {what}s are {_ranges(sorted(known))}")


def _ranges(found: list[int]) -> str:
    """1 2 3 7 -> `1-3, 7`."""
    runs: list[list[int]] = []
    for number in found:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
