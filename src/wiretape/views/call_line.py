"""One line per model call: what record and replay print while it happens, and what a tape's overview lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from rich.text import Text

from wiretape.model.call import ModelCall, Usage
from wiretape.views.figures import duration, tokens
from wiretape.views.printable import clip, name, one_line

SEPARATOR = "  "
WIDE = 100


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the line. The lowest `keep` goes first when the line is too long, clipped if `least` cells remain."""

    text: Text
    keep: int
    least: int | None = None

    def clipped(self, room: int) -> _Part | None:
        if self.least is None or room < self.least:
            return None
        return _Part(Text(clip(self.text.plain, room), self.text.style), _CLIPPED)


def call_line(call: ModelCall, width: int, *, agent: str | None = None) -> Text:
    """A call on one line of at most `width` cells. What does not fit is left out whole, the least telling first."""
    parts = list(_parts(call, agent, width))
    while len(parts) > 1 and (excess := _length(parts) - width) > 0:
        at = min(range(len(parts)), key=lambda i: parts[i].keep)
        clipped = parts[at].clipped(parts[at].text.cell_len - excess)
        parts[at : at + 1] = [clipped] if clipped else []
    line = Text(SEPARATOR, no_wrap=True, overflow="ellipsis").join(part.text for part in parts)
    line.truncate(width, overflow="ellipsis")
    return line


_FORMAT, _DURATION, _TOOLS, _AGENT, _MODEL, _USAGE, _FINISH, _NUMBER, _CLIPPED = range(9)


def _parts(call: ModelCall, agent: str | None, width: int) -> Iterable[_Part]:
    number = f"{call.number:>3}" if call.number else f"{'x' + str(call.exchange):>3}"
    yield _Part(Text(number, "bold"), _NUMBER)
    if agent is not None:
        yield _Part(Text(name(agent)), _AGENT)
    yield _Part(Text(name(call.model or host(call.url) or "unknown model"), "cyan"), _MODEL, 10)
    if call.kind != "inference":
        yield _Part(Text(call.kind.replace("_", " "), "dim"), _FINISH)
    else:
        if width >= WIDE:  # else some lines would have it and others not, as room happens to be
            yield _Part(Text(call.format, "dim"), _FORMAT)
        yield _Part(Text(usage_text(call.usage)), _USAGE)
    finish, bad = ending(call)
    yield _Part(Text(finish, "red" if bad else "green"), _FINISH)
    if call.tool_calls:
        yield _Part(Text("→ " + one_line(", ".join(tool.name for tool in call.tool_calls)), "magenta"), _TOOLS, 12)
    if call.ended_at is not None:
        yield _Part(Text(duration(call.ended_at - call.at), "dim"), _DURATION)


def _length(parts: list[_Part]) -> int:
    return sum(part.text.cell_len for part in parts) + len(SEPARATOR) * (len(parts) - 1)


def host(url: str) -> str:
    """The host that was spoken to, or nothing where the URL is none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def usage_text(usage: Usage | None) -> str:
    """`462 in (256 cached) 31 out`; what the wire does not give is left out, and nothing at all is said to be so."""
    if usage is None or (usage.input is None and usage.output is None):
        return "tokens unknown"
    cached = f" ({usage.cached:,} cached)" if usage.cached is not None else ""
    return f"{tokens(usage.input)} in{cached} {tokens(usage.output)} out"


def ending(call: ModelCall) -> tuple[str, bool]:
    """How a call ended, and whether that is bad."""
    response = call.response
    if response is None:
        return (f"no response ({call.ended})", True) if call.ended is not None else ("still open", False)
    if response.error is not None:
        kind = response.error.code or response.error.type
        return one_line(f"error {response.error.status}" + (f" {kind}" if kind else "")), True
    if response.status >= 400:
        return f"error {response.status}", True
    if not response.complete and call.ended is None:
        return "still open", False
    if not response.complete:
        return f"cut ({call.ended})" if call.ended not in (None, "complete") else "cut", True
    return response.finish or "done", response.finish == "error"
