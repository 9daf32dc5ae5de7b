"""Joins a Responses stream (SSE or WebSocket messages) into a response object.

Items are identified by `output_index`, because some servers change ids between events. `output_item.done` has the final
item; deltas count only for items without it.
"""

from __future__ import annotations

from typing import Any

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import StreamAssembler, has_text
from wiretape.wire.lenient import is_empty, items, number, obj, string
from wiretape.wire.payload import Event
from wiretape.wire.token_counts import latest_usage

TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_LIFECYCLE = frozenset({"response.created", "response.in_progress", "response.queued"})
# Kind of delta -> (item type if the item was not announced, member of the text).
_DELTAS: dict[str, tuple[str, str]] = {
    "output_text": ("message", "content"),
    "refusal": ("message", "content"),
    "reasoning_text": ("reasoning", "content"),
    "reasoning_summary_text": ("reasoning", "summary"),
    "function_call_arguments": ("function_call", "arguments"),
    "custom_tool_call_input": ("custom_tool_call", "input"),
    "mcp_call_arguments": ("mcp_call", "arguments"),
    "code_interpreter_call_code": ("code_interpreter_call", "code"),
}
_PARTS = {
    "output_text": ("output_text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("reasoning_text", "text"),
    "reasoning_summary_text": ("summary_text", "text"),
}
_MAX_INDEX = 1000  # parts of an item, commands of a call
_CALLS = ("function_call", "custom_tool_call", "mcp_call", "web_search_call", "code_interpreter_call")


class ItemPieces:
    """One unfinished output item."""

    __slots__ = ("_texts", "closed", "item")

    def __init__(self, item: JsonObject) -> None:
        self.item = item
        self.closed = False
        self._texts: dict[tuple[str, int], list[str]] = {}

    def close(self, item: JsonObject) -> None:
        self.item = item
        self.closed = True

    def append(self, kind: str, position: int, piece: str) -> None:
        pieces = self._texts.get((kind, position))
        if pieces is None:
            self._texts[kind, position] = [piece]
        else:
            pieces.append(piece)

    def replace(self, kind: str, position: int, text: str) -> None:
        self._texts[kind, position] = [text]

    def value(self) -> JsonObject:
        """Return the item; an unfinished one has the text of its deltas and the status `incomplete`."""
        if self.closed:
            return self.item
        item = {**self.item, "status": "incomplete"}
        for (kind, position), pieces in sorted(self._texts.items()):
            text = "".join(pieces)
            _, member = _DELTAS.get(kind, ("", kind))
            if kind not in _PARTS:
                item[member] = text
                continue
            part_type, inner = _PARTS[kind]
            parts = list(items(item.get(member)))
            parts += [{"type": part_type, inner: ""} for _ in range(position + 1 - len(parts))]
            parts[position] = {**obj(parts[position]), "type": part_type, inner: text}
            item[member] = parts
        return item


class ResponseAssembler(StreamAssembler):
    """Joins the events of one response; `value` is the response object so far."""

    __slots__ = ("_index_of", "_items", "_response", "terminal_error")

    def __init__(self) -> None:
        super().__init__()
        self._response: JsonObject = {}
        self._items: dict[int, ItemPieces] = {}
        self._index_of: dict[str, int] = {}
        self.terminal_error = False

    def add(self, event: Event) -> None:
        value = event.value
        if not isinstance(value, dict):
            self.unknown_events.append(value)
            return
        kind = value.get("type")
        kind = kind if isinstance(kind, str) else event.name
        if kind.endswith(".delta"):
            self._add_delta(kind, value, event.ms)
        elif kind in TERMINAL:
            self._finish(kind, value)
        elif kind in _LIFECYCLE:
            self._update(obj(value.get("response")))
        elif kind == "response.output_item.added":
            self._item_added(value, event.ms)
        elif kind == "response.output_item.done":
            self._item_done(value, event.ms)
        elif kind.endswith(".done"):
            self._text_done(kind, value, event.ms)
        elif kind == "error" or (not kind and not is_empty(value.get("error"))):
            self.error = value
            self.finished = True
        elif not kind and value.get("object") == "response":  # an unstreamed response in one event
            self._finish("", {"response": value})
        elif not kind.startswith(("response.", "codex.")) and kind not in ("keepalive", "ping"):
            self.unknown_events.append(value)

    def _update(self, response: JsonObject) -> None:
        usage = latest_usage(self._response.get("usage"), response.get("usage"))
        self._response = {**self._response, **response}
        if usage is not None:
            self._response["usage"] = usage

    def _finish(self, kind: str, value: JsonObject) -> None:
        response = obj(value.get("response"))
        self._update(response)
        self.finished = True
        if kind == "response.failed":
            self.terminal_error = True
        if not string(response.get("status")) and kind:
            self._response["status"] = kind.removeprefix("response.")

    def _pieces(self, value: JsonObject, assumed: str) -> ItemPieces:
        """Return the item of an event; create it if it was not announced."""
        index, item_id = number(value.get("output_index")), string(value.get("item_id"))
        if index is None:
            index = self._index_of.get(item_id or "", max(self._items, default=0))
        pieces = self._items.get(index)
        if pieces is None:
            pieces = self._items[index] = ItemPieces({"type": assumed})
            if item_id:
                self._index_of[item_id] = index
        return pieces

    def _add_delta(self, kind: str, value: JsonObject, ms: int | None) -> None:
        delta = value.get("delta")
        what = kind[9:-6] if kind.startswith("response.") else kind[:-6]
        if not delta or what == "reasoning_summary":
            if not delta and has_text(value):
                self.unknown_events.append(value)
            return
        if not isinstance(delta, str):
            if what == "shell_call_output_content":
                return  # the following output item repeats it
            self.unknown_events.append(value)
            return
        if self.first_ms is None:
            self.first_ms = ms
        if what == "shell_call_command":
            self._add_command(value, delta)
        elif what in _DELTAS:
            self._pieces(value, _DELTAS[what][0]).append(what, _part_index(value), delta)
        else:
            self._pieces(value, what).append(what, 0, delta)

    def _add_command(self, value: JsonObject, delta: str) -> None:
        pieces = self._pieces(value, "shell_call")
        action = obj(pieces.item.get("action"))
        commands = [c if isinstance(c, str) else "" for c in items(action.get("commands"))]
        index = _limited_index(value.get("command_index"))
        commands += [""] * (index + 1 - len(commands))
        commands[index] += delta
        pieces.item = {**pieces.item, "action": {**action, "commands": commands}}

    def _text_done(self, kind: str, value: JsonObject, ms: int | None) -> None:
        """Take the whole text of a `.done` event, in case deltas were lost."""
        what = kind[9:-5] if kind.startswith("response.") else kind[:-5]
        if what not in _DELTAS:
            return
        text = next((value[k] for k in ("text", "refusal", "arguments", "input", "code") if string(value.get(k))), None)
        if text is None:
            return
        pieces = self._pieces(value, _DELTAS[what][0])
        if not pieces.closed:
            pieces.replace(what, _part_index(value), text)
        self.note_content(ms)

    def _item_added(self, value: JsonObject, ms: int | None) -> None:
        item = value.get("item")
        if not isinstance(item, dict):
            return
        pieces = self._announce(value, item)
        if not pieces.closed:
            pieces.item = item
        if item.get("type") in _CALLS:
            self.note_content(ms)

    def _item_done(self, value: JsonObject, ms: int | None) -> None:
        item = value.get("item")
        if isinstance(item, dict):
            self._announce(value, item).close(item)
            self.note_content(ms)

    def _announce(self, value: JsonObject, item: JsonObject) -> ItemPieces:
        index = number(value.get("output_index"))
        if index is None:
            known = self._index_of.get(string(item.get("id")) or "")
            index = max(self._items, default=-1) + 1 if known is None else known
        pieces = self._items.get(index)
        if pieces is None:
            pieces = self._items[index] = ItemPieces(item)
        if string(item.get("id")):
            self._index_of[item["id"]] = index
        return pieces

    def value(self) -> JsonObject:
        output: dict[int, Any] = dict(enumerate(items(self._response.get("output"))))
        for index, pieces in self._items.items():
            if pieces.closed or index not in output:
                output[index] = pieces.value()
        return {**self._response, "output": [output[index] for index in sorted(output)]}


def _part_index(value: JsonObject) -> int:
    """Return the index of the part that a text belongs to."""
    index = value.get("content_index")
    return _limited_index(value.get("summary_index") if index is None else index)


def _limited_index(index: Json) -> int:
    """Return a list index within limits: a broken stream must not create huge lists."""
    return min(max(number(index) or 0, 0), _MAX_INDEX - 1)
