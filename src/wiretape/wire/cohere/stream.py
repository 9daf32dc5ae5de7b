"""Joins a Cohere stream into the answer of an unstreamed call."""

from __future__ import annotations

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import StreamAssembler, has_text
from wiretape.wire.failures import has_error
from wiretape.wire.lenient import items, number, obj, string
from wiretape.wire.payload import Event
from wiretape.wire.token_counts import latest_usage

_ENDS = ("content-end", "tool-call-end", "citation-end")
_GROWING = ("text", "thinking")


class CohereAssembler(StreamAssembler):
    """Joins the events of one stream; `value` is the answer so far. Parts and tool calls have separate indexes."""

    __slots__ = ("_calls", "_citations", "_end", "_parts", "_plan", "_start")

    def __init__(self) -> None:
        super().__init__()
        self._start: JsonObject = {}
        self._end: JsonObject = {}
        self._plan: list[str] = []
        self._parts: dict[int, tuple[JsonObject, dict[str, list[str]]]] = {}
        self._calls: dict[int, tuple[JsonObject, list[str]]] = {}
        self._citations: list[Json] = []

    def add(self, event: Event) -> None:
        value = event.value
        if not isinstance(value, dict):
            self.unknown_events.append(value)
            return
        kind = value.get("type")
        kind = kind if isinstance(kind, str) else event.name
        message = obj(obj(value.get("delta")).get("message"))
        if kind == "content-delta" and "content" not in message and has_text(value):
            self.unknown_events.append(value)
            return
        index = number(value.get("index")) or 0
        if kind in ("content-start", "content-delta"):
            self._content(index, message.get("content"), event.ms)
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._call(index, message.get("tool_calls"), event.ms)
        elif kind == "tool-plan-delta":
            if plan := string(message.get("tool_plan")):
                self._plan.append(plan)
                self.note_content(event.ms)
        elif kind == "citation-start":
            cited = message.get("citations")
            self._citations += cited if isinstance(cited, list) else [cited]
        elif kind == "message-start":
            self._start = value
        elif kind == "message-end":
            self._finish(obj(value.get("delta")))
        elif has_error(value):
            self.error = value
        elif kind not in _ENDS:
            self.unknown_events.append(value)

    def _content(self, index: int, raw: Json, ms: int | None) -> None:
        if not isinstance(raw, str | dict) and has_text(raw):
            self.unknown_events.append(raw)
        part, pieces = self._parts.setdefault(index, ({}, {}))
        delta = {"type": "text", "text": raw} if isinstance(raw, str) else obj(raw)
        for name, value in delta.items():
            if name in _GROWING and isinstance(value, str):
                pieces.setdefault(name, []).append(value)
                if value and self.first_ms is None:
                    self.first_ms = ms
            elif name in _GROWING:
                self.unknown_events.append({name: value})
            else:
                part[name] = value

    def _call(self, index: int, raw: Json, ms: int | None) -> None:
        """Add to a tool call; `tool_calls` is usually one object, and may be a list."""
        delta = obj(raw) or obj(next(iter(items(raw)), None))
        call, pieces = self._calls.setdefault(index, ({}, []))
        function = obj(delta.get("function"))
        call.update({k: v for k, v in delta.items() if k != "function" and v is not None})
        kept = {k: v for k, v in function.items() if k != "arguments" and v is not None}
        call["function"] = {**obj(call.get("function")), **kept}
        if isinstance(function.get("arguments"), str):
            pieces.append(function["arguments"])
        if delta:
            self.note_content(ms)

    def _finish(self, delta: JsonObject) -> None:
        usage = latest_usage(self._end.get("usage"), delta.get("usage"))
        self._end = {**self._end, **{k: v for k, v in delta.items() if k != "error"}, "usage": usage}
        self.finished = True
        if delta.get("error"):
            self.error = {"error": delta["error"]}
        elif delta.get("finish_reason") == "ERROR":
            self.error = {"message": "the model failed", "type": "ERROR"}

    def value(self) -> JsonObject:
        started = obj(obj(self._start.get("delta")).get("message"))
        content = [
            {**part, **{name: "".join(texts) for name, texts in pieces.items()}}
            for _, (part, pieces) in sorted(self._parts.items())
        ]
        calls = [
            {**call, "function": {**obj(call.get("function")), "arguments": "".join(pieces)}}
            for _, (call, pieces) in sorted(self._calls.items())
        ]
        message = {
            **started,
            "tool_plan": (string(started.get("tool_plan")) or "") + "".join(self._plan),
            "content": [*items(started.get("content")), *content],
            "tool_calls": [*items(started.get("tool_calls")), *calls],
            "citations": [*items(started.get("citations")), *self._citations],
        }
        return {"id": self._start.get("id"), "message": message, **self._end}
