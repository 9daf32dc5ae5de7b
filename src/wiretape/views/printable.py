"""Makes text of models and tools safe to print.

A terminal must not interpret such text: control characters, escape sequences, and characters that reorder or break
lines are shown as escapes.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from rich.cells import cell_len, chop_cells, set_cell_size

from wiretape.errors import UsageError
from wiretape.model.jsonvalue import Json

# C0 but tab and newline, DEL, C1, line separators, direction overrides and isolates, lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def visible(text: str) -> str:
    """Escape every control character. Line ends become newlines, tabs become spaces."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n")).expandtabs(4)


def one_line(text: str) -> str:
    """Return the text on one line: white space becomes one space."""
    return visible(" ".join(text.split()))


LONGEST_NAME = 60


@lru_cache(512)  # many lines have the same names
def name(text: str) -> str:
    """Return the name of a model, agent or tool for a table, with a limited length."""
    return clip(text, LONGEST_NAME)


def clip(text: str, width: int) -> str:
    """Return the text on one line of at most `width` cells, with `…` at the end if it is cut."""
    # A long text is cut first, so that only the visible part is escaped.
    line = one_line(text[: 8 * width + 64]) if len(text) > 8 * width + 64 else one_line(text)
    if cell_len(line) <= width:
        return line
    return set_cell_size(line, max(0, width - 1)).rstrip() + "…" if width > 0 else ""


def graphemes(text: str) -> list[str]:
    """Split the text into characters, each with its combining characters."""
    return [piece for piece in chop_cells(text, 1) if piece] or ([text] if text else [])


def json_text(value: Json, indent: int | None = 2) -> str:
    """Return JSON with readable CJK and escaped control characters. Raises UsageError if it is nested too deeply."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        raise UsageError("a JSON value is nested too deeply to print; wiretape show TAPE xN --raw writes it") from None
    return _UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)
