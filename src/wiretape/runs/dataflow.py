"""What flows between agents: a task in a tool call's arguments, an answer in a tool's result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import orjson

from wiretape.model import jsonwalk
from wiretape.model.jsonvalue import Json
from wiretape.runs.keys import canonical
from wiretape.runs.tools import RequestedTool

TOKEN = re.compile(r"[\w./#-]+")  # an id, a name, a word
_WHOLE = 8  # a closed tool call must have carried at least so many characters to be taken for the start of an agent
_PART = 20  # a text this long counts when it is only part of another
_OPEN = 100  # open tool calls looked at, latest first
_KEPT = 2 * _OPEN  # and remembered: what nobody ever answers must not pile up


def strings(value: Json) -> Iterator[str]:
    """All string values in a JSON value, stripped."""
    return (said for text in jsonwalk.strings(value) if (said := text.strip()))


def parsed(text: str) -> Json:
    """The JSON value that a text spells, or the text itself."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def carried(text: str) -> tuple[str, ...]:
    """What a tool's arguments or result carry: the whole text, and every string inside if it is JSON."""
    return tuple(dict.fromkeys((text.strip(), *strings(parsed(text)))))


def overlap(value: str, text: str) -> int:
    """Characters of one that stand in the other, if that is enough to mean something; else 0."""
    short, long = (value, text) if len(value) <= len(text) else (text, value)
    if len(short) < _PART and 2 * len(short) < len(long):
        return 0
    return len(short) if short and short in long else 0


def _carries(use: RequestedTool, value: str, text: str) -> int:
    """How much of a tool call's value a first message holds. Less is enough if the message names the tool, too."""
    size = overlap(value, text)
    if not size and len(value) >= _WHOLE and value in text and use.call.name in text:
        return len(value)
    return size


class Tasks:
    """Tool calls by what their arguments carry, for the calls up to a moment."""

    def __init__(self) -> None:
        self._by_value: dict[str, list[RequestedTool]] = {}
        self._open: list[RequestedTool] = []
        self._values: dict[int, tuple[str, ...]] = {}
        self._results: dict[int, tuple[str, ...]] = {}

    def add(self, use: RequestedTool) -> None:
        if use.call.kind == "server":  # the provider runs it, and starts no agent of ours
            return
        values = self._values[id(use)] = (*carried(use.call.arguments), canonical(use.call.arguments))
        for value in values:
            self._by_value.setdefault(value, []).append(use)
        self._open.append(use)

    def open_at(self, number: int) -> list[RequestedTool]:
        """The tools at work when call `number` started, latest first, as many as are worth looking at."""
        self._open = [use for use in self._open[-_KEPT:] if use.is_open(number)]
        return self._open[: -_OPEN - 1 : -1]

    def result_of(self, use: RequestedTool) -> tuple[str, ...]:
        """What a tool's result carries; read once."""
        found = self._results.get(id(use))
        if found is None:
            found = self._results[id(use)] = carried(use.result.text) if use.result is not None else ()
        return found

    def started_by(self, texts: Sequence[str], number: int, at: int) -> RequestedTool | None:
        """The tool call whose arguments carry one of these texts: whole before part, at work before done."""
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
        """Tool calls at work that started no agent yet and carry exactly one of the texts, in order."""
        for text in texts:
            for use in self._by_value.get(text, ()) or self._by_value.get(canonical(text), ()):
                if use.agent is None and use.is_open(number) and (use.at is None or use.at <= at):
                    yield use

    def _size(self, use: RequestedTool, texts: Sequence[str], spelled: Sequence[str]) -> int:
        """How much of the texts a tool call carries; a whole text counts for more than any part."""
        values, most = self._values[id(use)], 0
        for value in values:
            if value in spelled:
                return 1 << 30
            for text in texts:
                if value in text or text in value:
                    most = max(most, _carries(use, value, text))
        return most

    def _done(self, text: str, number: int, at: int) -> list[RequestedTool]:
        """Tool calls that carried a text and got a result before: tools that only set off an agent."""
        return [
            use
            for use in self._by_value.get(text, ())
            if use.agent is None and use.call_number < number and (use.at is None or use.at <= at)
        ]
