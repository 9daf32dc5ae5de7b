"""Joins a generateContent stream into the answer of an unstreamed call.

Each chunk has new parts. Consecutive texts are joined, except texts with a signature, which belongs to its part. Counts
are cumulative: the last non-null count wins.
"""

from __future__ import annotations

import re
from typing import Any

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import StreamAssembler, has_text
from wiretape.wire.failures import has_error
from wiretape.wire.gemini.payload import camel, get, spelled, unwrapped
from wiretape.wire.lenient import is_empty, items, number, obj, string
from wiretape.wire.payload import Event
from wiretape.wire.token_counts import latest_usage, wipes_a_side

_PLAIN = frozenset({"text", "thought"})
_KNOWN = frozenset(
    {"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId", "createTime", "modelStatus"}
    | {"automaticFunctionCallingHistory", "sdkHttpResponse", "parsed", "error", "response", "traceId"}
    | {"consumedCredits", "remainingCredits"}
)
_APART = frozenset({"candidates", "usageMetadata", "usage_metadata", "error"})
_STEP = re.compile(r"""\.?([^.\[\]]+)|\[(\d{1,6})\]|\[(['"])(.*?)\3\]""")
_VALUES = ("stringValue", "numberValue", "boolValue")


class PartialCall:
    """One function call whose arguments arrive in pieces, each with its JSON path. `call` is the resulting object."""

    __slots__ = ("_root", "_strings", "call")

    def __init__(self, call: JsonObject) -> None:
        self.call = dict(call)
        given = call.get("args")
        self._root: Any = dict(given) if isinstance(given, dict) else {}
        self._strings: dict[str, list[str]] = {}
        self.call["args"] = self._root

    def add(self, piece: JsonObject) -> None:
        path = piece.get(spelled(piece, "jsonPath"))
        if not isinstance(path, str):
            self._keep_unplaced(piece)
            return
        key = next((k for name in _VALUES if piece.get(k := spelled(piece, name)) is not None), None)
        value = piece[key] if key is not None else None
        if isinstance(value, str) and path in self._strings:
            self._strings[path].append(value)
        elif not self._set(path, value):
            self._keep_unplaced(piece)
        elif isinstance(value, str):
            self._strings[path] = [value]

    def join_strings(self) -> None:
        """Join the strings that arrived in pieces."""
        for path, pieces in self._strings.items():
            self._set(path, "".join(pieces))

    def _keep_unplaced(self, piece: JsonObject) -> None:
        """Keep a piece without a target next to the arguments."""
        self.call["partialArgs"] = [*items(self.call.get("partialArgs")), piece]

    def _set(self, path: str, value: Json) -> bool:
        steps = _steps(path)
        if not steps:
            return False
        target = self._root
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if isinstance(step, int) != isinstance(target, list):
                return False
            if isinstance(step, int):
                if step > len(target):
                    return False
                if step == len(target):
                    target.append(None)
            if following is None:
                target[step] = value
                return True
            inner = target[step] if isinstance(step, int) else target.get(step)
            if inner is None:
                inner = target[step] = [] if isinstance(following, int) else {}
            if not isinstance(inner, dict | list):
                return False
            target = inner
        return False


def _steps(path: str) -> list[str | int]:
    """Return the steps of a path such as `$.items[0].name`; [] if it cannot be parsed."""
    rest = path.removeprefix("$")
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            return []
        name, index, _, quoted = found.groups()
        steps.append(int(index) if index is not None else name if name is not None else quoted)
        at = found.end()
    return steps


class CandidatePieces:
    """One unfinished candidate."""

    __slots__ = ("_calls", "_open_call", "_other_members", "_text_pieces", "members", "parts")

    def __init__(self) -> None:
        self.members: JsonObject = {}
        self._other_members: JsonObject = {}  # members of the content other than its parts
        self.parts: list[JsonObject] = []
        self._text_pieces: list[str] | None = None  # the pieces of the last part, if it is a text that may continue
        self._calls: list[PartialCall] = []
        self._open_call: PartialCall | None = None  # the function call whose arguments are incomplete

    def add(self, candidate: JsonObject) -> bool:
        """Add a chunk's candidate; return whether it has content."""
        has_content = False
        content = candidate.get("content")
        if content is not None and not isinstance(content, dict):
            content = {"parts": [content]}  # malformed, but kept
        content = obj(content)
        parts = content.get("parts")
        for part in parts if isinstance(parts, list) else [] if parts is None else [parts]:
            has_content = self._extends_text(part) or self._add_part(part) or has_content
        for key, value in candidate.items():
            if key == "content":
                self._other_members.update(content)
            elif self.members.get(key) is value:
                pass  # unchanged, as in most chunks
            elif not is_empty(value) or key not in self.members:
                self.members[key] = value
        return has_content

    def _extends_text(self, part: Json) -> bool:
        """Append the text of a part that only continues the last text (the fast path for most parts)."""
        if self._text_pieces is None or not isinstance(part, dict) or len(part) != 1 or "thought" in self.parts[-1]:
            return False
        text = part.get("text")
        if not text or not isinstance(text, str):
            return False
        self._text_pieces.append(text)
        return True

    def _add_part(self, part: Json) -> bool:
        raw = obj(part)
        text = raw.get("text")
        if isinstance(text, str) and _PLAIN.issuperset(raw):
            return self._add_text(text, raw)
        key = spelled(raw, "functionCall")
        call = raw.get(key)
        if isinstance(call, dict) and "text" not in raw:
            if call == {} and self._open_call is None and len(raw) == 1:
                return False  # the end of a finished call
            in_pieces = get(call, "partialArgs") is not None or get(call, "willContinue") is True
            if in_pieces or (self._open_call is not None and not call.get("name")):
                self._add_partial_call(raw, key, call)
                return True
        self._join_text()
        self._open_call = None
        self.parts.append(part)
        return bool(text) or not isinstance(text, str)

    def _add_text(self, text: str, raw: JsonObject) -> bool:
        if not text:
            return False
        thought = raw.get("thought") is True
        if self._text_pieces is not None and (self.parts[-1].get("thought") is True) == thought:
            self._text_pieces.append(text)
            return True
        self._join_text()
        self._open_call = None
        self.parts.append({"text": "", "thought": True} if thought else {"text": ""})
        self._text_pieces = [text]
        return True

    def _add_partial_call(self, raw: JsonObject, key: str, call: JsonObject) -> None:
        """Add a call in pieces: first its name, then argument pieces, then usually an empty call as its end."""
        self._join_text()
        if self._open_call is None or string(call.get("name")):
            self._open_call = PartialCall(
                {k: v for k, v in call.items() if camel(k) not in ("partialArgs", "willContinue")}
            )
            self._calls.append(self._open_call)
            self.parts.append({**raw, key: self._open_call.call})
        else:
            self.parts[-1].update({k: v for k, v in raw.items() if k != key})
        for piece in items(get(call, "partialArgs")):
            self._open_call.add(obj(piece))
        if get(call, "willContinue") is not True:
            self._open_call = None

    def _join_text(self) -> None:
        if self._text_pieces is not None:
            self.parts[-1]["text"] = "".join(self._text_pieces)
            self._text_pieces = None

    def value(self) -> JsonObject:
        self._join_text()
        for call in self._calls:
            call.join_strings()
        return {**self.members, "content": {**self._other_members, "parts": self.parts}}


class GenerateAssembler(StreamAssembler):
    """Joins the objects of one stream; `value` is the answer so far."""

    __slots__ = ("_candidates", "_members", "_usage")

    def __init__(self) -> None:
        super().__init__()
        self._candidates: dict[int, CandidatePieces] = {}
        self._members: JsonObject = {}
        self._usage: JsonObject | None = None

    def add(self, event: Event) -> None:
        value = event.value
        body = unwrapped(value) if not isinstance(value, dict) or "response" in value else value
        if has_error(body):
            self.error = body
        elif _KNOWN.isdisjoint(body) and not any(camel(key) in _KNOWN for key in body):
            self.unknown_events.append(event.value)
            return
        has_content = False
        candidates = body.get("candidates")
        if not isinstance(candidates, list) and has_text(candidates):
            self.unknown_events.append(candidates)
        for candidate in items(candidates):
            if isinstance(candidate, dict):
                has_content |= self._candidate(candidate)
            else:
                self.unknown_events.append(candidate)
        if has_content and self.first_ms is None:
            self.first_ms = event.ms
        feedback = body.get("promptFeedback") or body.get("prompt_feedback")
        if feedback and not is_empty(get(obj(feedback), "blockReason")):
            self.finished = True
        counts = body.get("usageMetadata") or body.get("usage_metadata")
        if isinstance(counts, dict):
            whole = counts.get("totalTokenCount") is not None or counts.get("total_token_count") is not None
            wiped = whole and wipes_a_side(self._usage, counts)
            self._usage = counts if whole and not wiped else latest_usage(self._usage, counts)
        for key, value in body.items():
            if value is not None and key not in _APART:
                self._members[key] = value

    def _candidate(self, candidate: JsonObject) -> bool:
        index = candidate.get("index")
        if type(index) is not int:
            index = number(index) or 0
        pieces = self._candidates.get(index)
        if pieces is None:
            pieces = self._candidates[index] = CandidatePieces()
        reason = candidate.get("finishReason") or candidate.get("finish_reason")
        if reason and not is_empty(reason):
            self.finished = True
        return pieces.add(candidate)

    def value(self) -> JsonObject:
        answer: dict[str, Any] = {**self._members, "usageMetadata": self._usage}
        if self._candidates:
            answer["candidates"] = [self._candidates[index].value() for index in sorted(self._candidates)]
        return answer
