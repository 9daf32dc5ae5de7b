"""Renders the overview of a tape: its header, and its exchanges in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.model.http import Exchange
from wiretape.model.run import Run, Step
from wiretape.model.wording import UNKNOWN, count_text, duration_text, plural
from wiretape.tape.format.documents import Header
from wiretape.views.call_line import ending
from wiretape.views.printable import clip, name, one_line
from wiretape.views.prose import labelled, sentence
from wiretape.views.rows import Fit, TableColumn, fit, header_line, row_lines
from wiretape.views.show.exchange import exchange_words

LABEL = 12
INDENT = 4


def tape_view(name: str, header: Header, exchanges: Sequence[Exchange], run: Run) -> RenderableType:
    """Render what `wiretape show TAPE` shows."""
    return _TapeView(name, header, exchanges, run)


@dataclass(frozen=True, slots=True)
class _TapeView:
    name: str
    header: Header
    exchanges: Sequence[Exchange]
    run: Run

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        yield Text(one_line(self.name), style="bold")
        for label, said in _provenance(self.header):
            yield from labelled(console, label, Text(said), width, label_width=LABEL)
        yield from labelled(console, "holds", Text(self._holds()), width, label_width=LABEL)
        if self.exchanges:
            yield Text()
            yield from _listing(self.exchanges, self.run, width)
        if self.run.steps:
            yield Text()
            yield sentence("One call: wiretape show TAPE CALL. Why each was made: wiretape stats TAPE.", "dim")

    def _holds(self) -> str:
        run = self.run
        said = [plural(len(self.exchanges), "exchange"), plural(len(run.steps), "model call")]
        said += [plural(len(run.turns), "turn"), plural(len(run.agents), "agent")]
        said += [plural(len(run.side_calls), "side call")] if run.side_calls else []
        return ", ".join(said)


def _provenance(header: Header) -> Iterator[tuple[str, str]]:
    yield "started", header.started.isoformat(sep=" ", timespec="seconds")
    yield "recorder", one_line(header.recorder)
    for label in ("note", "provenance", "parent"):
        said = getattr(header, label, None)
        if said:
            yield label, one_line(said if isinstance(said, str) else str(said))
    if told := client_words(header.client):
        yield "client", one_line(told)
    if header.redacted:
        yield "redacted", one_line(", ".join(header.redacted))
    if header.bypassed:
        yield "bypassed", one_line(", ".join(header.bypassed)) + " (let through unrecorded)"


def client_words(client: Mapping[str, str | list[str]] | None) -> str:
    """Return the client of a tape: user agents, and other headers with their names."""
    said = []
    for header, value in (client or {}).items():
        values = [value] if isinstance(value, str) else value
        said.append(", ".join(values) if header == "user-agent" else f"{header} {', '.join(values)}")
    return "; ".join(said)


COLUMNS = [
    TableColumn("", right=True),
    TableColumn("call", right=True),
    TableColumn("at", right=True),
    TableColumn("agent", flexible=True),
    TableColumn("model", flexible=True, least=10),
    TableColumn("in", right=True),
    TableColumn("out", right=True),
    TableColumn("finish", flexible=True),
]


def _listing(exchanges: Sequence[Exchange], run: Run, width: int) -> Iterator[Text]:
    steps: dict[int, list[Step]] = {}
    for step in run.steps:
        steps.setdefault(step.call.exchange, []).append(step)
    agents = {agent.number: agent.name for agent in run.agents}
    side = {step.call.number for step in run.side_calls}
    rows = {s.call.number: _call_row(s, agents, s.call.number in side) for s in run.steps}
    others = [_other_cells(exchange) for exchange in exchanges if exchange.number not in steps]
    shape = fit(COLUMNS, [*rows.values(), *others], width)
    if rows:
        yield header_line(COLUMNS, shape)
    for exchange in exchanges:
        for step in steps.get(exchange.number, ()):
            yield from row_lines(COLUMNS, shape, rows[step.call.number])
            if step.call.tool_calls:
                asked = "→ " + ", ".join(tool.name for tool in step.call.tool_calls)
                yield Text(" " * _under_agent(shape) + clip(asked, width - _under_agent(shape)), style="magenta")
        if exchange.number not in steps:
            yield from _other(exchange, shape, width, bool(rows))


def _under_agent(shape: Fit) -> int:
    return sum(shape.widths[:3]) + 3 * shape.gap


def _call_row(step: Step, agents: dict[int, str], side: bool) -> list[Text]:
    call, usage = step.call, step.call.usage
    finish, bad = ending(call)
    return [
        Text(f"x{call.exchange}", style="dim"),
        Text(str(call.number), style="bold"),
        Text(duration_text(call.at)),
        Text("(side call)" if side else name(agents.get(step.agent, UNKNOWN)), style="dim" if side else ""),
        Text(name(call.model or UNKNOWN)),
        Text(count_text(usage.input if usage else None)),
        Text(count_text(usage.output if usage else None)),
        Text(finish, style="red" if bad else ""),
    ]


def _other_cells(exchange: Exchange) -> list[Text]:
    """Return the cells of an exchange that is not a model call."""
    cells = [Text(f"x{exchange.number}"), Text(), Text(duration_text(exchange.at))]
    return cells + [Text()] * (len(COLUMNS) - len(cells))


def _other(exchange: Exchange, shape: Fit, width: int, aligned: bool) -> Iterator[Text]:
    """Render an exchange that is not a model call. Its line has an exchange number instead of a call number."""
    number, _, at = (cell.plain for cell in _other_cells(exchange)[:3])
    if aligned:
        first, called, when = shape.widths[:3]
        gap = " " * shape.gap
        start = gap.join([number.rjust(first), " " * called, at.rjust(when), ""])
    else:
        start = f"{number:>4}  {at:>8}  "
    yield Text(start + clip(f"{exchange.request.method} {exchange.request.url}", width - len(start)), style="dim")
    yield Text(" " * len(start) + clip("→ " + exchange_words(exchange), width - len(start)), style="dim")
