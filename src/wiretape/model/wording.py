"""Words for numbers, lists and long values in messages."""

from __future__ import annotations

from collections.abc import Sequence


def plural(number: int, noun: str, many: str | None = None) -> str:
    """`1 call`, `4 calls`, `2 entries` (with `many` given)."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def clip(text: str, size: int) -> str:
    """The text, cut to `size` characters with `…` at the end. For terminal cells see `views.printable.clip`."""
    return text if len(text) <= size else text[: size - 1] + "…"


def listed(items: Sequence[object], most: int | None = None) -> str:
    """`1, 2, 3`; with more than `most` items `1, 2, …`."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown}, …" if most is not None and len(items) > most else shown


def numbered(noun: str, numbers: Sequence[object], most: int | None = None) -> str:
    """`call 3`; `calls 3, 4, …`."""
    return f"{noun}{'s' if len(numbers) > 1 else ''} {listed(numbers, most)}"
