"""Joins a Chat Completions stream into the completion of an unstreamed call.

This module joins deltas; `chat_messages` interprets the result.
"""

from __future__ import annotations

from typing import Any

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import StreamAssembler, has_text
from wiretape.wire.failures import has_error
from wiretape.wire.lenient import dumps, is_empty, items, load, number, obj, string
from wiretape.wire.payload import Event
from wiretape.wire.token_counts import latest_usage

# Every chunk has at least one of these members.
_CHUNK = frozenset({"choices", "usage", "id", "object", "error"})
# Members of a chunk with information outside its choices.
_SAYS_MORE = frozenset({"usage", "x_groq", "timings"})
_IGNORED = frozenset({"role", "obfuscation", "p", "channel", "token_ids"})


class CallPieces:
    """One unfinished tool call."""

    __slots__ = ("arguments", "id", "kind", "name", "rest")

    def __init__(self) -> None:
        self.id: str | None = None
        self.name = ""
        self.kind: str = "function"
        self.arguments: list[str] = []
        self.rest: JsonObject = {}

    def is_complete(self) -> bool:
        """Return whether the arguments so far are a complete JSON text."""
        return isinstance(load("".join(self.arguments) or "?"), dict)

    def value(self) -> JsonObject:
        arguments = "".join(self.arguments)
        inner = {"name": self.name, "input" if self.kind == "custom" else "arguments": arguments}
        return {"id": self.id, "type": self.kind, self.kind: inner, **self.rest}


class ToolCallDeltas:
    """Assigns deltas to tool calls.

    Servers disagree on ids and indexes: a non-empty id decides, then the index, then the latest call. Empty values
    never overwrite.
    """

    __slots__ = ("_by_index", "calls")

    def __init__(self) -> None:
        self.calls: list[CallPieces] = []
        self._by_index: dict[int, CallPieces] = {}

    def add(self, delta: JsonObject) -> None:
        call = self._call_for(delta)
        kind = "custom" if not is_empty(delta.get("custom")) and is_empty(delta.get("function")) else "function"
        inner = obj(delta.get(kind)) or (delta if "name" in delta or "arguments" in delta else {})
        if kind == "custom":
            call.kind = kind
        name, arguments = string(inner.get("name")), inner.get("input" if kind == "custom" else "arguments")
        if name:
            if not call.name:
                call.name = name
            elif name != call.name and not call.arguments and call.id is None:
                call.name += name
        call.id = call.id or string(delta.get("id"))
        if isinstance(arguments, str):
            if arguments:
                call.arguments.append(arguments)
        elif arguments is not None and (arguments or not call.arguments):
            call.arguments.append(dumps(arguments))
        for key, value in delta.items():
            if key not in ("id", "index", "type", "function", "custom", "name", "arguments") and not is_empty(value):
                call.rest[key] = value

    def _call_for(self, delta: JsonObject) -> CallPieces:
        call_id, index = string(delta.get("id")), number(delta.get("index"))
        if call_id:
            known = next((c for c in self.calls if c.id == call_id), None)
            if known is not None:
                return known
        before = self._by_index.get(index) if index is not None else (self.calls[-1] if self.calls else None)
        if before is not None and not self._starts_call(delta, call_id, index, before):
            return before
        call = CallPieces()
        self.calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _starts_call(self, delta: JsonObject, call_id: str | None, index: int | None, before: CallPieces) -> bool:
        """Return whether this delta starts another call than the call at its index (or the latest one)."""
        if call_id:
            return before.id is not None or (index is None and bool(before.arguments))
        inner = obj(delta.get("function")) or obj(delta.get("custom")) or delta
        name = string(inner.get("name"))
        if not name:
            return False
        if index is None:
            return name != before.name or not before.arguments or before.is_complete()
        # Calls without ids may share an index; each arrives whole.
        return bool(before.name) and before.is_complete() and not is_empty(inner.get("arguments"))


class ChoicePieces:
    """One unfinished choice."""

    __slots__ = ("_calls", "_details", "_legacy", "_parts", "_rest", "_texts", "finish", "role")

    def __init__(self) -> None:
        self.role = "assistant"
        self.finish: str | None = None
        self._texts: dict[str, list[str]] = {}
        self._parts: list[JsonObject] | None = None  # content as a list of parts (Mistral)
        self._details: dict[tuple[Any, Any], JsonObject] = {}
        self._calls = ToolCallDeltas()
        self._legacy: JsonObject = {}
        self._rest: JsonObject = {}

    def add(self, delta: JsonObject) -> bool:
        """Add a delta; return whether it has content."""
        has_content = False
        for key, value in delta.items():
            if value is None or value == "" or key in _IGNORED:
                continue
            if isinstance(value, str) and (key != "content" or self._parts is None):
                pieces = self._texts.get(key)
                if pieces is None:
                    self._texts[key] = [value]
                else:
                    pieces.append(value)
                has_content = True
            else:
                has_content = self._add_other(key, value) or has_content
        return has_content

    def _add_other(self, key: str, value: Json) -> bool:
        if is_empty(value):
            return False
        if key == "content":
            self._add_parts(value if isinstance(value, list) else [value])
        elif key == "tool_calls":
            for call in [value] if isinstance(value, dict) else items(value):
                self._calls.add(obj(call))
        elif key == "reasoning_details":
            for detail in items(value):
                self._add_detail(obj(detail))
        elif key in ("function_call", "audio"):
            self._join(self._legacy.setdefault(key, {}), obj(value))
        elif isinstance(value, list) and isinstance(self._rest.get(key), list):
            self._rest[key] = [*self._rest[key], *value]
        else:
            self._rest[key] = value
        return key not in ("annotations", "content_filter_results", "logprobs")

    @staticmethod
    def _join(into: JsonObject, piece: JsonObject) -> None:
        """Merge a delta: strings are concatenated, except names and ids."""
        for key, value in piece.items():
            if isinstance(value, dict | list) and key == "arguments":
                value = dumps(value)
            if isinstance(value, str) and isinstance(into.get(key), str) and key not in ("name", "id"):
                into[key] += value
            elif not is_empty(value) or key not in into:
                into[key] = value

    def _add_parts(self, parts: list[Json]) -> None:
        if self._parts is None:
            begun = self._texts.pop("content", None)
            self._parts = [{"type": "text", "text": "".join(begun)}] if begun else []
        for raw in parts:
            part = {"type": "text", "text": raw} if isinstance(raw, str) else raw
            last = self._parts[-1] if self._parts else None
            if last is None or not isinstance(part, dict) or obj(last).get("type") != part.get("type"):
                self._parts.append(dict(part) if isinstance(part, dict) else part)
            elif part.get("type") == "thinking":
                last["thinking"] = _join_thinking(last.get("thinking"), part.get("thinking"))
            elif part.get("type") == "text":
                last["text"] = (string(last.get("text")) or "") + (string(part.get("text")) or "")
            else:
                self._parts.append(part)

    def _add_detail(self, piece: JsonObject) -> None:
        index, kind = piece.get("index"), piece.get("type")
        key = (index if isinstance(index, int | str) else None, kind if isinstance(kind, str) else None)
        detail = self._details.setdefault(key, {})
        for name, value in piece.items():
            if name in ("text", "summary") and isinstance(value, str):
                detail[name] = (string(detail.get(name)) or "") + value
            elif not is_empty(value) or name not in detail:
                detail[name] = value

    def value(self, index: int) -> JsonObject:
        message: JsonObject = {"role": self.role, "content": None}
        message.update({key: "".join(pieces) for key, pieces in self._texts.items()})
        if self._parts is not None:
            message["content"] = self._parts
        if self._details:
            message["reasoning_details"] = list(self._details.values())
        message.update(self._legacy)
        message.update(self._rest)
        if self._calls.calls:
            message["tool_calls"] = [call.value() for call in self._calls.calls]
        return {"index": index, "message": message, "finish_reason": self.finish}


def _join_thinking(before: Json, piece: Json) -> Json:
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    joined = [dict(p) if isinstance(p, dict) else p for p in items(before)]
    for part in items(piece):
        last = joined[-1] if joined else None
        if isinstance(last, dict) and string(obj(part).get("text")) and isinstance(last.get("text"), str):
            last["text"] += part["text"]
        else:
            joined.append(part)
    return joined


class ChatAssembler(StreamAssembler):
    """Joins the events of one stream; `value` is the completion so far."""

    __slots__ = ("_choices", "_head", "_timings", "_usage")

    def __init__(self) -> None:
        super().__init__()
        self._head: JsonObject = {}
        self._choices: dict[int, ChoicePieces] = {}
        self._usage: JsonObject | None = None
        self._timings: Json = None

    def add(self, event: Event) -> None:
        chunk = event.value
        if not isinstance(chunk, dict):
            self.unknown_events.append(chunk)
            return
        choices = chunk.get("choices")
        if event.name == "error" or (("error" in chunk or choices is None) and has_error(chunk)):
            self.error = chunk
        elif chunk and _CHUNK.isdisjoint(chunk):
            self.unknown_events.append(chunk)
        if chunk.get("model"):
            self._head["model"] = chunk["model"]
        if "id" not in self._head and chunk.get("id"):
            self._head["id"] = chunk["id"]
            self._head["service_tier"] = chunk.get("service_tier")
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict):
                    self._add_choice(choice, event.ms)
                elif has_text(choice):
                    self.unknown_events.append(choice)
        elif self.error is not chunk and has_text(chunk):
            self.unknown_events.append(chunk)
        if chunk.get("object") == "chat.completion.done":
            self.finished = True
        if not _SAYS_MORE.isdisjoint(chunk):
            self._add_ending(chunk, choices)

    def _add_choice(self, choice: JsonObject, ms: int | None) -> None:
        index = choice.get("index")
        if index.__class__ is not int:
            index = number(index) or 0
        pieces = self._choices.get(index)
        if pieces is None:
            pieces = self._choices[index] = ChoicePieces()
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = self._other_delta(choice)
        role = delta.get("role")
        if role and isinstance(role, str):
            pieces.role = role
        if pieces.add(delta) and self.first_ms is None:
            self.first_ms = ms
        if choice.get("usage"):
            self._usage = latest_usage(self._usage, choice["usage"])
        finish = choice.get("finish_reason") or choice.get("stop_reason")
        if finish and isinstance(finish, str) and finish != "null":
            pieces.finish = finish
            self.finished = True

    def _other_delta(self, choice: JsonObject) -> JsonObject:
        """Return the content of a choice without a `delta` object."""
        message = choice.get("message")
        if isinstance(message, dict):
            return message
        content = choice.get("delta") or message or choice.get("text")
        if content is None and has_text(choice):
            self.unknown_events.append(choice)
        return {"content": content}

    def _add_ending(self, chunk: JsonObject, choices: Json) -> None:
        """Take the usage of a chunk."""
        found = chunk.get("usage") or obj(chunk.get("x_groq")).get("usage")
        if found:
            self._head["service_tier"] = chunk.get("service_tier") or self._head.get("service_tier")
            self._usage = latest_usage(self._usage, found)
            if choices == [] and number(obj(found).get("completion_tokens")) is not None:
                self.finished = True  # some servers end with this additional chunk only
        if "timings" in chunk:
            self._timings = chunk["timings"]

    def value(self) -> JsonObject:
        choices = [self._choices[index].value(index) for index in sorted(self._choices)]
        return {**self._head, "choices": choices, "usage": self._usage, "timings": self._timings}
