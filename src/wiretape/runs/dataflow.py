"""Data flow between agents: a task in a tool call's arguments, an answer in a tool's result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wiretape.model import jsonwalk
from wiretape.model.jsonvalue import Json
from wiretape.runs.content_keys import canonical
from wiretape.runs.tools import RequestedTool

TOKEN = re.compile(r"[\w./#-]+")  # an id, a name, a word
_WHOLE = 8  # characters of the shortest task in a tool call that already has its result
_PART = 20  # characters of the shortest text that counts as a part of another
_OPEN = 100  # open tool calls that are compared, latest first
_KEPT = 2 * _OPEN  # open tool calls that are remembered: some never get a result


def strings(value: Json) -> Iterator[str]:
    """All string values in a JSON value, stripped."""
    return (said for text in jsonwalk.strings(value) if (said := text.strip()))


def carried(text: str) -> tuple[str, ...]:
    """The texts in a tool's arguments or result: the whole, and every string inside if it is JSON."""
    return tuple(dict.fromkeys((text.strip(), *strings(jsonwalk.parsed(text)))))


def overlap(value: str, text: str) -> int:
    """The length of the shorter text if the longer one contains it and it is long enough; else 0."""
    short, long = (value, text) if len(value) <= len(text) else (text, value)
    if len(short) < _PART and 2 * len(short) < len(long):
        return 0
    return len(short) if short and short in long else 0


def _carries(use: RequestedTool, value: str, text: str) -> int:
    """The overlap of a tool call's value and a first message. A short value counts if the message names the tool."""
    size = overlap(value, text)
    if not size and len(value) >= _WHOLE and value in text and use.call.name in text:
        return len(value)
    return size


class Tasks:
    """The tool calls up to a time, by the texts in their arguments."""

    def __init__(self) -> None:
        self._by_value: dict[str, list[RequestedTool]] = {}
        self._open: list[RequestedTool] = []
        self._values: dict[int, tuple[str, ...]] = {}
        self._results: dict[int, tuple[str, ...]] = {}

    def add(self, use: RequestedTool) -> None:
        if use.call.kind == "server":  # the provider runs it, so it starts no agent
            return
        values = self._values[id(use)] = (*carried(use.call.arguments), canonical(use.call.arguments))
        for value in values:
            self._by_value.setdefault(value, []).append(use)
        self._open.append(use)

    def open_at(self, number: int) -> list[RequestedTool]:
        """The latest tool calls without a result when call `number` started, latest first."""
        self._open = [use for use in self._open[-_KEPT:] if use.is_open(number)]
        return self._open[: -_OPEN - 1 : -1]

    def result_of(self, use: RequestedTool) -> tuple[str, ...]:
        """The texts in a tool's result, cached."""
        found = self._results.get(id(use))
        if found is None:
            found = self._results[id(use)] = carried(use.result.text) if use.result is not None else ()
        return found

    def started_by(self, texts: Sequence[str], number: int, at: int) -> RequestedTool | None:
        """The tool call with one of the texts in its arguments: whole before part, open before answered."""
        whole = next(self._whole(texts, number, at), None)
        if whole is not None:
            return whole
        spelled = (*texts, *(canonical(text) for text in texts))
        possible = [use for use in self.open_at(number) if use.at is None or use.at <= at]
        ranked = [
            (use.agent is not None, -size, use.call_number, use.index, use)
            for use in possible
            if (size := self._size(use, texts, spelled))
        ]
        if ranked:
            return min(ranked, key=lambda rank: rank[:4])[4]
        return next((use for text in texts if len(text) >= _WHOLE for use in self._done(text, number, at)), None)

    def _whole(self, texts: Sequence[str], number: int, at: int) -> Iterator[RequestedTool]:
        """Open tool calls that started no agent yet and have exactly one of the texts, in order."""
        for text in texts:
            for use in self._by_value.get(text, ()) or self._by_value.get(canonical(text), ()):
                if use.agent is None and use.is_open(number) and (use.at is None or use.at <= at):
                    yield use

    def _size(self, use: RequestedTool, texts: Sequence[str], spelled: Sequence[str]) -> int:
        """The overlap of the texts with a tool call; a whole text counts more than any part."""
        values, most = self._values[id(use)], 0
        for value in values:
            if value in spelled:
                return 1 << 30
            for text in texts:
                if value in text or text in value:
                    most = max(most, _carries(use, value, text))
        return most

    def _done(self, text: str, number: int, at: int) -> list[RequestedTool]:
        """Tool calls with a text that already have a result: tools that start an agent and return at once."""
        return [
            use
            for use in self._by_value.get(text, ())
            if use.agent is None and use.call_number < number and (use.at is None or use.at <= at)
        ]
