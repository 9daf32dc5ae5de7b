"""Words for numbers, lists and long values in messages."""

from __future__ import annotations

from collections.abc import Sequence

UNKNOWN = "?"  # an unknown number, in tables and lines of facts


def plural(number: int, noun: str, many: str | None = None) -> str:
    """`1 call`, `4 calls`, `2 entries` (with `many` given)."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def clip(text: str, size: int) -> str:
    """The text, cut to `size` characters with `…` at the end. For terminal cells see `views.printable.clip`."""
    return text if len(text) <= size else text[: size - 1] + "…"


def window(text: str, start: int, width: int) -> str:
    """The text from `start` on, in at most `width` characters, with `…` at each end that was cut."""
    before = "…" if start else ""
    return before + clip(text[start : start + width + 1], width - len(before))


def listed(items: Sequence[object], most: int | None = None) -> str:
    """`1, 2, 3`; with more than `most` items `1, 2, …`."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown}, …" if most is not None and len(items) > most else shown


def numbered(noun: str, numbers: Sequence[object], most: int | None = None) -> str:
    """`call 3`; `calls 3, 4, …`."""
    return f"{noun}{'s' if len(numbers) > 1 else ''} {listed(numbers, most)}"


def count_text(number: int | None, unknown: str = UNKNOWN) -> str:
    """`1,234`; an unknown number is never 0."""
    return unknown if number is None else f"{number:,}"


def duration_text(ms: int | None) -> str:
    """`350 ms`, `12.5 s`, `2m 05s`, `1h 40m`: at most eight characters."""
    if ms is None:
        return UNKNOWN
    if ms < 1000:
        return f"{ms} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m"
