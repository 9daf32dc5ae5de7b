"""Stops and texts in words."""

from __future__ import annotations

from wiretape.debug.timeline import Stop, Timeline


def describe_stop(timeline: Timeline, stop: Stop) -> str:
    """`call 3, after its answer`."""
    match stop.phase:
        case "start":
            return "the start of the tape, before the first call"
        case "end":
            return "the end of the tape, after the last call"
        case "request":
            return f"call {stop.call}, before its request"
        case "answer":
            return f"call {stop.call}, after its answer"
        case "tool":
            use = timeline.use(stop)
            return f"call {stop.call}, at its tool {use.call.name if use is not None else stop.tool}"


def first_line(text: str, length: int = 60) -> str:
    """The beginning of a text, with white space collapsed."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length and len(text) <= 4 * length else line[: length - 1] + "…"
