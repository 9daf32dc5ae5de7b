"""Joins a stream of Converse, or of Nova on Invoke, into the answer of an unstreamed call.

Text and reasoning start with their first delta; only tool calls, results and images are announced. The usage follows
the stop.
"""

from __future__ import annotations

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.bedrock.event_stream import AwsEvents, error_value
from wiretape.wire.decoding import StreamAssembler
from wiretape.wire.lenient import NotJson, is_empty, items, load, merge, number, obj, string
from wiretape.wire.payload import Event
from wiretape.wire.token_counts import latest_usage

EVENTS = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
)
_QUIET = ("contentBlockIndex", "p")  # `p` is padding of random length


def named_events(read: AwsEvents) -> list[Event]:
    """Return each event as `{name: value}`."""
    return [
        Event(name, {name: value}, ms) if kind == "event" else Event("error", error_value(name, value), ms)
        for kind, name, value, ms in read.events
    ]


class PartPieces:
    """One unfinished content part: its announcement and its deltas."""

    __slots__ = ("announced", "citations", "pieces", "redacted", "results", "signature", "unknown_events")

    def __init__(self) -> None:
        self.announced: JsonObject = {}
        self.pieces: dict[str, list[str]] = {}
        self.signature: Json = None
        self.redacted: list[str] = []
        self.citations: list[Json] = []
        self.results: list[Json] = []
        self.unknown_events: list[JsonObject] = []

    def value(self) -> list[JsonObject]:
        """Return the part in the unstreamed shape; several parts if a faulty server mixed them."""
        parts: list[JsonObject] = []
        joined = {kind: "".join(pieces) for kind, pieces in self.pieces.items()}
        if "reasoning" in joined or self.signature is not None:
            reasoning = {"text": joined.get("reasoning", ""), "signature": self.signature}
            parts.append({"reasoningContent": {"reasoningText": reasoning}})
        if self.redacted:
            parts.append({"reasoningContent": {"redactedContent": "".join(self.redacted)}})
        if self.citations:
            cited = {"content": [{"text": joined.get("text", "")}], "citations": self.citations}
            parts.append({"citationsContent": cited})
        elif joined.get("text"):
            parts.append({"text": joined["text"]})
        parts += [self._announced(key, value, joined) for key, value in self.announced.items()]
        if "input" in joined and "toolUse" not in self.announced:
            parts.append(self._announced("toolUse", {}, joined))
        if self.results and "toolResult" not in self.announced:
            parts.append({"toolResult": {"content": self.results}})
        return parts + self.unknown_events

    def _announced(self, key: str, value: Json, joined: dict[str, str]) -> JsonObject:
        if key == "toolUse" and joined.get("input"):
            parsed = load(joined["input"])
            return {key: {**obj(value), "input": joined["input"] if isinstance(parsed, NotJson) else parsed}}
        if key == "toolResult" and self.results:
            return {key: {**obj(value), "content": [*items(obj(value).get("content")), *self.results]}}
        return {key: value}


class ConverseAssembler(StreamAssembler):
    """Joins the events of one stream, each `{name: value}`; `value` is the answer so far."""

    __slots__ = ("_by_index", "_parts", "_rest", "_role", "_stop")

    def __init__(self) -> None:
        super().__init__()
        self._role = "assistant"
        self._parts: list[PartPieces] = []
        self._by_index: dict[int, PartPieces] = {}
        self._stop: JsonObject = {}
        self._rest: JsonObject = {}

    def add(self, event: Event) -> None:
        if not isinstance(event.value, dict):
            self.unknown_events.append(event.value)
            return
        if event.name == "error":
            self.error = event.value
            return
        known = False
        for name, value in event.value.items():
            if name in EVENTS and isinstance(value, dict):
                self._add_event(name, value, event.ms)
                known = True
            elif name.endswith("Exception"):
                self.error = error_value(name, value)
                known = True
        if not known:
            self.unknown_events.append(event.value)

    def _add_event(self, name: str, value: JsonObject, ms: int | None) -> None:
        if name == "contentBlockDelta":
            self._delta(self._part(value), value.get("delta"), ms)
        elif name == "contentBlockStart":
            self._start(value, ms)
        elif name == "messageStart":
            self._role = string(value.get("role")) or self._role
        elif name == "messageStop":
            self._stop = value
            self.finished = True
        elif name == "metadata":
            usage = latest_usage(self._rest.get("usage"), value.get("usage"))
            self._rest = {**(merge(self._rest, value) or {}), "usage": usage}

    def _part(self, value: JsonObject) -> PartPieces:
        index = number(value.get("contentBlockIndex")) or 0
        part = self._by_index.get(index)
        if part is None:
            part = self._by_index[index] = PartPieces()
            self._parts.append(part)
        return part

    def _start(self, value: JsonObject, ms: int | None) -> None:
        start = value.get("start")
        if is_empty(start):
            return
        if not isinstance(start, dict):
            self.unknown_events.append({"contentBlockStart": value})
            return
        self._part(value).announced.update(start)
        self.note_content(ms)

    def _delta(self, part: PartPieces, delta: Json, ms: int | None) -> None:
        if not isinstance(delta, dict):
            if not is_empty(delta):
                part.unknown_events.append({"delta": delta})
            return
        for key, value in delta.items():
            if not is_empty(value) and self._grow(part, key, value) and self.first_ms is None:
                self.first_ms = ms

    def _grow(self, part: PartPieces, key: str, value: Json) -> bool:
        """Add a delta's member; return whether it has content."""
        if key == "text" and isinstance(value, str):
            part.pieces.setdefault("text", []).append(value)
        elif key == "toolUse" and isinstance(obj(value).get("input"), str):
            if not value["input"]:
                return False
            part.pieces.setdefault("input", []).append(value["input"])
        elif key == "reasoningContent" and isinstance(value, dict):
            return self._reason(part, value)
        elif key == "citation":
            part.citations.append(value)
        elif key == "toolResult" and isinstance(value, list):
            part.results += value
        elif key == "image" and isinstance(part.announced.get("image"), dict) and isinstance(value, dict):
            part.announced["image"] = {**part.announced["image"], **value}
        else:
            part.unknown_events.append({key: value})
        return True

    @staticmethod
    def _reason(part: PartPieces, value: JsonObject) -> bool:
        text, redacted = string(value.get("text")), string(value.get("redactedContent"))
        if text:
            part.pieces.setdefault("reasoning", []).append(text)
        if redacted:
            part.redacted.append(redacted)
        if value.get("signature") is not None:
            part.signature = value["signature"]
        if not value.keys() & {"text", "redactedContent", "signature"}:
            part.unknown_events.append({"reasoningContent": value})
        return bool(text or redacted)

    def value(self) -> JsonObject:
        content = [piece for part in self._parts for piece in part.value()]
        stop = {key: value for key, value in self._stop.items() if key not in _QUIET}
        rest = {key: value for key, value in self._rest.items() if key not in _QUIET}
        return {"output": {"message": {"role": self._role, "content": content}}, **stop, **rest}
