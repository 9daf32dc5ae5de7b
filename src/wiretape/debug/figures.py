"""Numbers and stops in words. An unknown number is `unknown` or `?`, never 0."""

from __future__ import annotations

from wiretape.debug.timeline import Stop, Timeline

UNKNOWN = "unknown"


def count_text(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def count_cell(number: int | None) -> str:
    """A count for a table cell."""
    return "?" if number is None else f"{number:,}"


def duration_text(ms: int | None) -> str:
    """`350 ms`, `12.5 s`, `2m 05s`."""
    if ms is None:
        return "?"
    if ms < 1000:
        return f"{ms} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    return f"{minutes}m {seconds:02d}s"


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
    timeline = " ".join(text[: 4 * length].split())
    return timeline if len(timeline) <= length and len(text) <= 4 * length else timeline[: length - 1] + "…"
