"""What agents said to one another: one line for each message, report, list, interruption and handoff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from wiretape.analyze.report import LinkReport
from wiretape.model.run import Certainty, LinkBasis, LinkKind
from wiretape.views.printable import clip, one_line
from wiretape.views.prose import labelled

MOST = 40  # lines; the rest is counted
_DETAIL = 160  # characters of a tool's own words
# A start and a result stand with their agent and their call already.
_SAYS: dict[LinkKind, str] = {
    "message": "message to",
    "report": "report to",
    "closing": "closing message to",
    "handoff": "hands over to",
    "listed": "list of agents:",
    "interrupted": "interrupts",
    "compacted": "summed up its history:",
}
_RESTS_ON: dict[LinkBasis, str] = {
    "header": "a header says so",
    "id": "an id says so",
    "data_flow": "by its text",
    "order": "by its order",
}
_SURE: dict[Certainty, str] = {"certain": "", "likely": "likely, ", "possible": "possibly, "}


def between(links: Sequence[LinkReport], console: Console, width: int) -> Iterator[Text]:
    """The section; nothing where agents only start one another and answer."""
    told = [link for link in links if link.kind in _SAYS]
    if not told:
        return
    yield Text()
    yield Text("Between agents", style="bold")
    for link in told[:MOST]:
        label = f"call {link.from_call}" if link.from_call is not None else "?"
        yield from labelled(console, label, Text(_words(link)), width, label_width=10)
    if len(told) > MOST:
        yield Text(f"{len(told) - MOST:,} more: wiretape stats --json lists them", style="dim")


def _words(link: LinkReport) -> str:
    agent = one_line(link.to_agent) if link.to_agent is not None else "an agent without calls here"
    unnamed = link.kind == "listed" and link.to_agent is None
    said = _SAYS[link.kind] if unnamed else f"{_SAYS[link.kind]} {agent}"
    if link.to_call is not None:
        said += f", call {link.to_call}"
    if link.detail is not None:
        said += f"{'' if unnamed else ':' if link.kind == 'listed' else ','} {clip(link.detail, _DETAIL)}"
    if link.kind in ("listed", "interrupted"):
        return said
    return f"{said} ({_SURE[link.certainty]}{_RESTS_ON[link.basis]})"
