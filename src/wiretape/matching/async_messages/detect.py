"""Find the asynchronous messages of a recording: reports of subagents, notifications of a harness.

In another run such a message may have another position in the history, or arrive at another call. A message counts as
asynchronous only if it arrived after the thread's first call, between an answer and the next one, and if it is in a
harness's tags, names an id that a tool of the thread returned, quotes another agent, or has a role of its own. Messages
of a user or a program are never asynchronous.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from wiretape.matching.async_messages.history import HistoryPart, HistoryParts
from wiretape.matching.recorded import RecordedExchange
from wiretape.model.call import CallRequest, Message, Text, ToolCall, ToolResult
from wiretape.model.run import Run, Step
from wiretape.model.volatile_text import ID_LIKE
from wiretape.runs.dataflow import carried
from wiretape.runs.user_text import answer_text, is_result_as_text, words
from wiretape.wire.base import Memo

_SAYING: Final = 8  # characters of the shortest text of an agent that is recognized in a message
_SPOKEN: Final = ("user", "system", "assistant", "tool")


@dataclass(slots=True, eq=False)
class DetectedThread:
    """A recorded thread with asynchronous messages.

    `inserted[n]`: the asynchronous parts that call n added, each with its message's index. `passing`: the answers
    without tool calls. An asynchronous message may follow them, so another run may have fewer or more of them.
    """

    calls: list[RecordedExchange]
    requests: list[CallRequest]
    inserted: list[list[tuple[int, HistoryPart]]] = field(default_factory=list)
    passing: list[HistoryPart] = field(default_factory=list)


def detect_threads(
    run: Run, by_exchange: dict[int, RecordedExchange], pieces: HistoryParts, memo: Memo
) -> Iterator[DetectedThread]:
    """The threads of a tape with asynchronous messages."""
    steps = {step.call.number: step for step in run.steps}
    said = _sayings(run)
    for thread in run.threads:
        here = [steps[number] for number in thread.calls if steps[number].call.exchange in by_exchange]
        if len(here) < 2:
            continue  # only its first call
        detected = DetectedThread([by_exchange[step.call.exchange] for step in here], [])
        others = [text for number, texts in said.items() if number != thread.number for text in texts]
        reader = _Reader(detected, others, pieces)
        for step, recorded in zip(here, detected.calls, strict=True):
            request = recorded.probe.call(memo)
            if request is None:
                break
            reader.read(step, request)
        if len(detected.requests) == len(here) and any(detected.inserted):
            yield detected


def _sayings(run: Run) -> dict[int, list[str]]:
    """By thread: its agent's answers, and the texts that it passed to tools."""
    said: dict[int, list[str]] = {}
    for step in run.steps:
        response = step.call.response
        if response is None:
            continue
        texts = [answer_text(response.messages) or ""]
        for call in step.call.tool_calls:
            texts += carried(call.arguments)[1:]
        kept = [text.strip() for text in texts if len(text.strip()) >= _SAYING]
        said.setdefault(step.thread, []).extend(dict.fromkeys(kept))
    return said


class _Reader:
    """Reads the requests of one thread in their order."""

    def __init__(self, detected: DetectedThread, others: Sequence[str], pieces: HistoryParts) -> None:
        self._reported = detected
        self._others = others
        self._pieces = pieces
        self._ids: set[str] = set()  # in the arguments and results of the thread's tools

    def read(self, step: Step, request: CallRequest) -> None:
        detected, messages = self._reported, request.messages
        start = step.new_from - (len(step.call.request.messages) - len(messages))
        begun = bool(detected.requests)
        found: list[tuple[int, HistoryPart]] = []
        for n in range(max(0, start), len(messages)) if begun and start >= 0 else ():
            found += [(n, piece) for piece in self._asynchronous_parts(messages[n])]
            self._note(messages[n : n + 1])
        if not begun:
            self._note(messages)
        detected.requests.append(request)
        detected.inserted.append(found)
        self._note_answer(step)

    def _asynchronous_parts(self, message: Message) -> Iterator[HistoryPart]:
        """The asynchronous parts of a message."""
        if message.role in ("assistant", "tool") or is_result_as_text(message):
            return
        pieces = [piece for piece in self._pieces.of(message) if not piece.tool]
        shown = [piece.text is not None and self._is_asynchronous(piece.text) for piece in pieces]
        if message.role not in _SPOKEN:
            yield from pieces
            return
        for piece, evident in zip(pieces, shown, strict=True):
            if evident or (piece.text is None and any(shown)):
                yield piece

    def _is_asynchronous(self, text: str) -> bool:
        if text.strip() and not words(text):
            return True
        if any(match[0] in self._ids for match in ID_LIKE.finditer(text)):
            return True
        return any(saying in text for saying in self._others)

    def _note(self, messages: Iterable[Message]) -> None:
        for message in messages:
            for block in message.blocks:
                if isinstance(block, ToolResult):
                    self._ids.update(match[0] for match in ID_LIKE.finditer(block.text))

    def _note_answer(self, step: Step) -> None:
        for call in step.call.tool_calls:
            self._ids.update(match[0] for match in ID_LIKE.finditer(call.arguments))
        answer = step.call.response.messages if step.call.response is not None else ()
        if asks_for_nothing(answer):
            self._reported.passing += [piece for message in answer for piece in self._pieces.of(message)]


def asks_for_nothing(answer: Sequence[Message]) -> bool:
    """Whether an answer is only text, so that repeating it has no effect."""
    blocks = [block for message in answer for block in message.blocks]
    return any(isinstance(block, Text) for block in blocks) and not any(isinstance(b, ToolCall) for b in blocks)
