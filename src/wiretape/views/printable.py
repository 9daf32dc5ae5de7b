"""Text from outside made safe and fit to print: nothing here knows calls or tapes.

What a model or a tool said is data. A terminal must never obey it: control characters and escape sequences are shown
as escapes, and so are characters that reorder or break lines.
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
    """The text with everything that a terminal would obey shown as an escape; line ends are newlines, no tabs."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n")).expandtabs(4)


def one_line(text: str) -> str:
    """The text on one line: each run of blanks and line ends is one space."""
    return visible(" ".join(text.split()))


LONGEST_NAME = 60


@lru_cache(512)  # the same few stand in line after line
def name(text: str) -> str:
    """A name (a model's, an agent's, a tool's) for a table: a wire may claim any length."""
    return clip(text, LONGEST_NAME)


def clip(text: str, width: int) -> str:
    """One line of at most `width` cells; what does not fit ends in `…`. Wide characters count as two."""
    # A cell holds at least a quarter of a character in practice; no need to clean a megabyte to show a line.
    line = one_line(text[: 8 * width + 64]) if len(text) > 8 * width + 64 else one_line(text)
    if cell_len(line) <= width:
        return line
    return set_cell_size(line, max(0, width - 1)).rstrip() + "…" if width > 0 else ""


def graphemes(text: str) -> list[str]:
    """The text in the smallest pieces that a line may be cut into: a character and what combines with it."""
    return [piece for piece in chop_cells(text, 1) if piece] or ([text] if text else [])


def json_text(value: Json, indent: int | None = 2) -> str:
    """JSON for people and programs alike: readable CJK, and no character that a terminal would obey."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        raise UsageError("a JSON value is nested too deeply to print; wiretape show TAPE xN --raw writes it") from None
    return _UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)
