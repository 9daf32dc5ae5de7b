"""The first words of a miss in a test: what differs. The short summary of pytest has room for no more."""

from __future__ import annotations

from wiretape.matching.values import Miss


def headline(miss: Miss, tape: str) -> str:
    """`messages[0].content differs from call 1 of greet.tape`. Empty: its own first line says it."""
    if miss.nearest is None:
        return f"{miss.what} was never recorded on {tape}" if miss.reason == "never recorded" else ""
    named = f"{miss.nearest} of {tape}"
    match miss.reason:
        case "diverged" | "never recorded":
            return f"{_where(miss)} differs from {named}"
        case "already played":
            return f"{named} was already played"
        case "not playable":
            return f"{named} cannot be played"
        case _:
            return ""


def _where(miss: Miss) -> str:
    """What was never recorded keeps the place in its text alone: `…, differs from its start at messages[0].content`."""
    if miss.differences:
        return miss.differences[0].where
    story = miss.message.split("\n")[1]
    return story.partition(" at ")[2] or miss.what
