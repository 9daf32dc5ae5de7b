"""The report of `wiretape doctor`: a line for each check with its next step, and the variables to set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.views.printable import one_line

Level: TypeAlias = Literal["ok", "warn", "fail"]

_STYLES: dict[Level, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Check(_Document):
    """The result of one check. `next`: what to do, if it found a problem."""

    level: Level
    what: str
    said: str
    next: str | None = None


class WouldSet(_Document):
    """A variable that would be set for the program."""

    name: str
    value: str
    why: str


class DoctorReport(_Document):
    """The JSON of `wiretape doctor --json`. `sets`: the variables that the program would get."""

    checks: tuple[Check, ...]
    program: str | None = None
    sets: tuple[WouldSet, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        return any(check.level == "fail" for check in self.checks)


def doctor_view(report: DoctorReport) -> RenderableType:
    """Render the report."""
    return _DoctorView(report)


class _DoctorView:
    def __init__(self, report: DoctorReport) -> None:
        self._report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report, width = self._report, options.max_width
        column = max((len(check.what) for check in report.checks), default=0)
        for check in report.checks:
            head = Text.assemble((f"{check.level:<4}", _STYLES[check.level]), f"  {one_line(check.what):<{column}}  ")
            yield from _hung(console, head, check.said, width)
            if check.next is not None:
                yield from _hung(console, Text(" " * (column + 8) + "→ "), check.next, width)
        if report.sets:
            yield Text()
            yield from _hung(console, Text(), f"{report.program or 'The program'} would be run with", width, "bold")
        for why, settings in groupby(report.sets, key=lambda setting: setting.why):
            yield from _hung(console, Text("  # ", "dim"), why, width, "dim")
            for setting in settings:
                yield Text(f"  {one_line(setting.name)}={one_line(setting.value)}", overflow="fold")
        for note in report.notes:
            yield from _hung(console, Text("note  "), note, width)
        yield Text(f"\n{_verdict(report.checks)}")


def _hung(console: Console, head: Text, said: str, width: int, style: str = "") -> RenderResult:
    """Yield a text with a hanging indent behind a head."""
    indent = head.cell_len
    body = Text(one_line(said), style)
    for position, line in enumerate(body.wrap(console, max(20, width - indent), overflow="fold")):
        line.rstrip()
        yield Text.assemble(head if not position else " " * indent, line)


def _verdict(checks: Sequence[Check]) -> str:
    failed = sum(check.level == "fail" for check in checks)
    warned = sum(check.level == "warn" for check in checks)
    if failed:
        return f"{failed} broken" + (f", {warned} to look at" if warned else "")
    return f"nothing broken, {warned} to look at" if warned else "all is well"
