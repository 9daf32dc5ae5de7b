"""A tree of all histories of a tape: finding the call that a call continues costs only its new content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wiretape.model.call import Message, ModelCall
from wiretape.runs.agent_identity import system_of
from wiretape.runs.content_keys import ContentKeys

ROOT = 0
_FEW = 32  # the first and last calls with equal histories that are compared: a poll may repeat a call 1,000 times


@dataclass(frozen=True, slots=True)
class HistoryMark:
    """The end of an earlier request or answer on a path: its node, and the index of the message after it."""

    node: int
    index: int
    before: HistoryMark | None  # the mark before it; paths share marks


@dataclass(frozen=True, slots=True)
class HistoryPath:
    """The path of a request in the tree."""

    end: int
    mark: HistoryMark | None  # the last one
    known: int  # the last node that existed before
    known_index: int

    def marks(self) -> Iterator[HistoryMark]:
        """The marks, last first."""
        mark = self.mark
        while mark is not None:
            yield mark
            mark = mark.before


def few(numbers: Sequence[int]) -> Sequence[int]:
    """The first and the last of the numbers, if there are many."""
    return tuple(numbers) if len(numbers) <= 2 * _FEW else (*numbers[:_FEW], *numbers[-_FEW:])


class HistoryTree:
    """A tree of atoms. A node is a history; the requests and answers that end there are known."""

    def __init__(self, keys: ContentKeys) -> None:
        self._keys = keys
        self._child: dict[tuple[int, int], int] = {}
        self._requests: dict[int, list[int]] = {}
        self._answers: dict[int, list[int]] = {}
        self._recorded: list[int | None] = [None]  # by node: the last call whose recorded answer is on its path
        self._shortcuts: dict[int, tuple[tuple[Message, ...], int, HistoryMark]] = {}

    def requests_at(self, node: int) -> Sequence[int]:
        """The calls whose requests end at the node: the first and the last ones."""
        return few(self._requests.get(node, ()))

    def answers_at(self, node: int) -> Sequence[int]:
        """The calls whose answers end at the node: the first and the last ones."""
        return few(self._answers.get(node, ()))

    def recorded_at(self, node: int) -> int | None:
        """The last call whose recorded answer is in this history."""
        return self._recorded[node]

    def walk(self, call: ModelCall, base: int = ROOT) -> HistoryPath:
        """Follow a request's history from `base`, and add its new part."""
        messages = call.request.messages
        mark = self._resume(messages) if base == ROOT else None
        node, start = (mark.node, mark.index) if mark is not None else (base, 0)
        known, known_index = node, start
        child, requests, answers, atoms_of = self._child, self._requests, self._answers, self._keys.of
        for index in range(start, len(messages)):
            for atom in atoms_of(messages[index]):
                following = child.get((node, atom))
                if following is None:
                    node = self._add(node, atom)
                    continue
                node = known = following
                known_index = index + 1
                if node in answers or node in requests:
                    mark = HistoryMark(node, known_index, mark)
        return HistoryPath(node, mark, known, known_index)

    def _add(self, node: int, atom: int) -> int:
        child = self._child[node, atom] = len(self._recorded)
        self._recorded.append(self._recorded[node])
        return child

    def _resume(self, messages: tuple[Message, ...]) -> HistoryMark | None:
        """The end of an earlier request in this one, if both have the same message objects."""
        for last in range(len(messages) - 1, -1, -1):
            found = self._shortcuts.get(id(messages[last]))
            if found is None:
                continue
            earlier, skip, mark = found
            if len(earlier) == last + 1 and messages[skip : last + 1] == earlier[skip:]:  # compared by identity
                own = next((i for i, m in enumerate(messages) if m.role != "system"), 0)
                if own == skip:
                    return mark
        return None

    def record(self, number: int, call: ModelCall, path: HistoryPath) -> int:
        """Add a call's request and answer; return the node after its answer."""
        self._requests.setdefault(path.end, []).append(number)
        messages = call.request.messages
        if messages and (call.request.held or call.request.previous_response_id is None):
            same = path.mark is not None and path.mark.node == path.end
            mark = path.mark if same and path.mark else HistoryMark(path.end, len(messages), path.mark)
            self._shortcuts[id(messages[-1])] = (messages, len(system_of(call.request)), mark)
        node = path.end
        for atom in self._keys.of_all(call.response.messages) if call.response else ():
            node = self._child.get((node, atom)) or self._add(node, atom)
        if node != path.end:
            self._answers.setdefault(node, []).append(number)
            self._recorded[node] = number
        return node
