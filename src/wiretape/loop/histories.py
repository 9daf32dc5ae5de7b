"""Every history of a tape as paths in one tree, so that finding what a call continues costs its new content only."""

from __future__ import annotations

from dataclasses import dataclass

from wiretape.loop.keys import Keys
from wiretape.loop.speaker import system_of
from wiretape.model.call import Message, ModelCall

ROOT = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on a call's path where an earlier call's request, or its answer, ended."""

    node: int
    index: int  # the first message of the new call's request after it
    request_of: tuple[int, ...]
    answer_of: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """The way a request took through the tree."""

    end: int
    marks: tuple[Mark, ...]  # shallow to deep
    known: int  # the deepest node that was there before
    known_index: int


class Histories:
    """A tree of atoms. A node is a history; `requests` and `answers` say which calls' histories end there."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._child: dict[tuple[int, int], int] = {}
        self._requests: dict[int, tuple[int, ...]] = {}
        self._answers: dict[int, tuple[int, ...]] = {}
        self._recorded: list[int | None] = [None]  # per node: the last call whose recorded answer lies on its path
        self._shortcuts: dict[int, tuple[tuple[Message, ...], int, int]] = {}

    def requests_at(self, node: int) -> tuple[int, ...]:
        return self._requests.get(node, ())

    def recorded_at(self, node: int) -> int | None:
        """The last call whose recorded answer is part of this history."""
        return self._recorded[node]

    def walk(self, call: ModelCall, base: int = ROOT) -> Path:
        """Follow a request's history from `base`, adding what is new."""
        messages = call.request.messages
        node, start = self._resume(messages) if base == ROOT else (base, 0)
        marks: list[Mark] = []
        known, known_index = node, start
        if start:
            self._mark(marks, node, start)
        for index in range(start, len(messages)):
            for atom in self._keys.of(messages[index]):
                following = self._child.get((node, atom))
                if following is None:
                    node = self._add(node, atom)
                else:
                    node = known = following
                    known_index = index + 1
                    self._mark(marks, node, index + 1)
        return Path(node, tuple(marks), known, known_index)

    def _mark(self, marks: list[Mark], node: int, index: int) -> None:
        requests, answers = self._requests.get(node, ()), self._answers.get(node, ())
        if requests or answers:
            marks.append(Mark(node, index, requests, answers))

    def _add(self, node: int, atom: int) -> int:
        child = self._child[node, atom] = len(self._recorded)
        self._recorded.append(self._recorded[node])
        return child

    def _resume(self, messages: tuple[Message, ...]) -> tuple[int, int]:
        """Where an earlier request's very same messages end in this one: its node and the index after it."""
        for last in range(len(messages) - 1, -1, -1):
            found = self._shortcuts.get(id(messages[last]))
            if found is None:
                continue
            earlier, skip, node = found
            if len(earlier) == last + 1 and messages[skip : last + 1] == earlier[skip:]:  # compared by identity
                own = next((i for i, m in enumerate(messages) if m.role != "system"), 0)
                if own == skip:
                    return node, last + 1
        return ROOT, 0

    def record(self, number: int, call: ModelCall, path: Path) -> int:
        """Remember a call's request and answer; gives the node after its answer."""
        self._requests[path.end] = (*self._requests.get(path.end, ()), number)
        messages = call.request.messages
        if messages and call.request.previous_response_id is None:
            self._shortcuts[id(messages[-1])] = (messages, len(system_of(call.request)), path.end)
        node = path.end
        for atom in self._keys.of_all(call.response.messages) if call.response else ():
            node = self._child.get((node, atom)) or self._add(node, atom)
        if node != path.end:
            self._answers[node] = (*self._answers.get(node, ()), number)
            self._recorded[node] = number
        return node
