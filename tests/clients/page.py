"""Updates the table of docs/clients.md: rows of cases that were run are replaced, others keep their date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "clients.md"
BEGIN, END = "<!-- written by tests/clients/run.py --write -->", "<!-- end -->"


def with_rows(page: str, columns: Sequence[str], rows: Iterable[Sequence[str]], order: Sequence[str]) -> str:
    """Return the page with these rows, each of which begins with the name of its case, in the given order."""
    before, _, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page has no lines {BEGIN} and {END}")
    known = {row[0]: row for row in map(_cells, old.splitlines()) if len(row) == len(columns)}
    known.pop(columns[0], None)
    known |= {row[0]: tuple(row) for row in rows}
    places = {name: place for place, name in enumerate(order)}
    sorted_rows = sorted(known.values(), key=lambda row: places.get(row[0], len(places)))
    lines = [_line(columns), "|" + "---|" * len(columns), *map(_line, sorted_rows)]
    return f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(line: str) -> tuple[str, ...]:
    if not line.startswith("| "):
        return ()
    return tuple(cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|"))
