"""Commands written in one text: separated by `;` or line ends, outside of quotes and regular expressions."""

from __future__ import annotations

import re

# A quote inside a word (don't) opens nothing.
_PIECE = re.compile(
    r"""(?<!\w)"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*'|(?<=[\s~])/(?:\\.|[^/\\\n])+/|(?P<end>[;\n])"""
)


def split(text: str) -> list[str]:
    """The commands of a text, in order. Blank ones and lines that begin with # are left out."""
    found, start = [], 0
    for match in _PIECE.finditer(text):
        if match["end"] and not _in_comment(text, start, match):
            found.append(text[start : match.start()])
            start = match.end()
    found.append(text[start:])
    return [command for part in found if (command := part.strip()) and not command.startswith("#")]


def _in_comment(text: str, start: int, match: re.Match[str]) -> bool:
    """A `;` in a comment ends nothing: only the line's end does."""
    return match["end"] == ";" and text[start : match.start()].lstrip().startswith("#")
