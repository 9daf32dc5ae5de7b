"""The text of a miss: the nearest recorded call, both values where it differs, and the command that fixes it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wiretape.compare.excerpt import LIVE, RECORDED, excerpts
from wiretape.matching.faults.apply import FAULT_CODE, provider_error
from wiretape.matching.lookup.index import Probe
from wiretape.matching.misses.nearest import Nearest
from wiretape.matching.recorded import RecordedExchange
from wiretape.matching.values import Miss, MissReason
from wiretape.model.http import Headers
from wiretape.model.run import Run

_SHOWN = 3  # differences that a miss shows; the rest are counted


@dataclass(frozen=True, slots=True)
class MissFix:
    """The last lines of a miss, and the command in them, if it can be copied."""

    line: str
    command: str = ""


def miss(
    number: int,
    probe: Probe,
    reason: MissReason,
    nearest: Nearest | None,
    tapes: str,
    label: Callable[[RecordedExchange], str],
    note: str,
    mend: MissFix,
) -> Miss:
    """The miss of a request, with an error response in the provider's shape."""
    what = probe.address.what
    named = label(nearest.recorded) if nearest is not None and reason != "never recorded" else ""
    lines = [f"no call on {tapes} answers {what}{f' ({named})' if named else ''}"]
    lines += _story(reason, nearest, note)
    lines.append(mend.line)
    message = "\n".join(lines)
    headers, body = provider_error(probe.format, 400, message, "wiretape_miss")
    return Miss(
        number=number,
        what=what,
        reason=reason,
        message=message,
        nearest=nearest.recorded.reference if nearest is not None else None,
        differences=nearest.differences if nearest is not None and reason == "diverged" else (),
        headers=Headers([*headers.pairs(), ("x-should-retry", "false")]),
        body=body,
        mend=mend.command,
    )


def fault(number: int, what: str, error: Exception) -> Miss:
    """The miss of a request on which wiretape itself failed."""
    message = (
        f"wiretape failed on {what}: {type(error).__name__}: {error}\n"
        "  this is a bug in wiretape, not in the program: please report it, with the tape if you can share it"
    )
    headers, body = provider_error(None, 400, message, FAULT_CODE)
    headers = Headers([*headers.pairs(), ("x-should-retry", "false")])
    return Miss(number, what, "fault", message, headers=headers, body=body)


def thread_labels(run: Run) -> dict[int, str]:
    """Labels such as `call 3 of thread "calendar"`, by exchange number."""
    names = {agent.number: agent.name for agent in run.agents}
    exchanges = {step.call.number: step.call.exchange for step in run.steps}
    return {
        exchanges[number]: f'call {position} of thread "{names[thread.agent]}"'
        for thread in run.threads
        for position, number in enumerate(thread.calls, 1)
        if number in exchanges and thread.agent in names
    }


def _story(reason: MissReason, nearest: Nearest | None, note: str) -> list[str]:
    if reason == "not playable":
        return [f"  {note}"]
    if nearest is None:
        return ["  it was never recorded: the tape has no call like it"]
    if reason == "already played":
        return [f"  {nearest.recorded.reference} would, but it was already played"]
    where = nearest.differences[0].where if nearest.differences else "its body"
    if reason == "diverged":
        lines = [f"  it diverges from {nearest.recorded.reference} at {where}"]
    else:
        lines = [
            f"  it was never recorded; the nearest, {nearest.recorded.reference}, differs from its start at {where}"
        ]
    for position, apart in enumerate(nearest.differences[:_SHOWN]):
        if position:
            lines.append(f"  and at {apart.where}")
        recorded, live = excerpts(apart)
        lines += [f"    {RECORDED}{recorded}", f"    {LIVE}{live}"]
    if len(nearest.differences) > _SHOWN:
        lines.append(f"  and at {len(nearest.differences) - _SHOWN} more places")
    return lines


def miss_fix(reason: MissReason, tapes: Sequence[str], program: str) -> MissFix:
    """The `wiretape` command that fixes a miss."""
    if reason == "already played":
        why, command = "to give recorded answers again", f"wiretape replay {shlex.join(tapes)} --repeat"
    else:
        why = "if the change is intended" if reason == "diverged" else "to record this run instead"
        command = f"wiretape record --update {shlex.quote(tapes[0])}"
    return MissFix(f"  {why}: {command} -- {program}", f"{command} -- {program}")
