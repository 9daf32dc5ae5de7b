"""Shows two differing values side by side, cut down to where they differ."""

from __future__ import annotations

from itertools import takewhile

from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import text_of
from wiretape.replay.values import Absent, Difference

RECORDED = "recorded  "  # what stands before the values where they are shown under each other
LIVE = "live      "


def excerpts(difference: Difference, width: int = 100) -> tuple[str, str]:
    """Both values on one line each, around their first difference."""
    recorded, live = spelled(difference.recorded), spelled(difference.live)
    if max(len(recorded), len(live)) <= width:
        return recorded, live
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(recorded, live, strict=False)))
    start = max(0, common - width // 3)
    return _window(recorded, start, width), _window(live, start, width)


def spelled(value: Json | Absent) -> str:
    """A value on one line: text as it is, anything else as JSON."""
    if isinstance(value, Absent):
        return "(nothing)"
    text = value if isinstance(value, str) else text_of(value)
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _window(text: str, start: int, width: int) -> str:
    before = "…" if start else ""
    room = width - len(before)
    shown = text[start : start + room]
    return f"{before}{shown[:-1]}…" if len(text) > start + room else f"{before}{shown}"
