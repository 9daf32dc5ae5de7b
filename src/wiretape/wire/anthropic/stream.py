"""Joins an Anthropic stream into the message of an unstreamed call."""

from __future__ import annotations

from typing import Any

from wiretape.model.jsonvalue import JsonObject
from wiretape.wire.anthropic.usage import cache_tokens
from wiretape.wire.decoding import StreamAssembler
from wiretape.wire.failures import has_error
from wiretape.wire.lenient import NOT_JSON, is_empty, items, load, number, obj, string
from wiretape.wire.payload import Event
from wiretape.wire.token_counts import is_empty_report, latest_usage, without_output

# Delta -> (member of the block, member of the delta, block type if the block was not started).
_GROWING = {
    "text_delta": ("text", "text", "text"),
    "thinking_delta": ("thinking", "thinking", "thinking"),
    "input_json_delta": ("input", "partial_json", "tool_use"),
}
_BEARING_STARTS = ("text", "thinking", "")  # these blocks start empty: their deltas have the content


class BlockPieces:
    """One unfinished content block."""

    __slots__ = ("block", "pieces")

    def __init__(self, block: JsonObject) -> None:
        self.block = dict(block)
        self.pieces: dict[str, list[str]] = {}

    def value(self) -> JsonObject:
        block = self.block
        for member, pieces in self.pieces.items():
            text = "".join(pieces)
            if member != "input":
                block = {**block, member: (string(block.get(member)) or "") + text}
            elif text:
                parsed = load(text)
                block = {**block, "input": text if parsed is NOT_JSON else parsed}
        return block


class AnthropicAssembler(StreamAssembler):
    """Joins the events of one stream; `value` is the message so far."""

    __slots__ = ("_abandoned", "_blocks", "_by_index", "_message", "_usage", "cache_inside", "output_is_final")

    def __init__(self) -> None:
        super().__init__()
        self._message: JsonObject = {}
        self._usage: JsonObject | None = None
        self._blocks: list[BlockPieces] = []
        self._by_index: dict[int, BlockPieces] = {}
        self._abandoned: list[JsonObject] = []
        self.output_is_final = False  # the start reports a provisional output
        self.cache_inside = False  # the input includes its cached part, unlike Anthropic's own

    def add(self, event: Event) -> None:
        value = event.value
        if not isinstance(value, dict):
            self.unknown_events.append(value)
            return
        kind = value.get("type")
        kind = kind if isinstance(kind, str) else event.name
        if kind == "content_block_delta":
            self._delta(value, event.ms)
        elif kind == "content_block_start":
            self._start_block(value, event.ms)
        elif kind == "message_start":
            self._start_message(obj(value.get("message")))
        elif kind == "message_delta":
            self._end_message(value)
        elif kind == "message_stop":
            self.finished = True
        elif kind == "error" or (kind not in ("ping", "content_block_stop") and has_error(value)):
            self.error = value
        elif kind == "message" and "content" in value:  # an unstreamed message in one event
            self._start_message(value)
            self.finished = self.output_is_final = True
        elif kind not in ("ping", "content_block_stop", "keepalive", "keep-alive"):
            self.unknown_events.append(value)

    def _start_message(self, message: JsonObject) -> None:
        """Start the message. A second start with another id means that a gateway retried: drop earlier blocks."""
        if self._message and message.get("id") != self._message.get("id"):
            if self._blocks:
                self._abandoned.append(self.value())
            self._blocks, self._by_index, self._usage = [], {}, None
            self.finished = self.output_is_final = self.cache_inside = False
        elif self._message:  # the same start, sent twice
            self._usage = latest_usage(self._usage, message.get("usage"))
            return
        self._message = message
        self._usage = latest_usage(None, message.get("usage"))
        for block in items(message.get("content")):
            self._blocks.append(BlockPieces(obj(block)))

    def _start_block(self, value: JsonObject, ms: int | None) -> None:
        block = obj(value.get("content_block"))
        pieces = BlockPieces(block)
        self._blocks.append(pieces)
        self._by_index[self._index(value)] = pieces
        if block.get("type") not in _BEARING_STARTS or string(block.get("text")):
            self.note_content(ms)

    @staticmethod
    def _index(value: JsonObject) -> int:
        return number(value.get("index")) or 0

    def _delta(self, value: JsonObject, ms: int | None) -> None:
        delta = value.get("delta")
        if not isinstance(delta, dict):
            self.unknown_events.append(value)
            return
        kind = delta.get("type")
        growing = _GROWING.get(kind) if isinstance(kind, str) else None
        pieces = self._by_index.get(self._index(value))
        if pieces is None:
            pieces = BlockPieces({"type": growing[2] if growing else "text"})
            self._blocks.append(pieces)
            self._by_index[self._index(value)] = pieces
        if growing is None:
            self._other_delta(pieces, delta, ms)
            return
        member, source, _ = growing
        piece = delta.get(source)
        if not isinstance(piece, str):  # another shape
            self._other_delta(pieces, delta, ms)
        elif piece:
            known = pieces.pieces.get(member)
            if known is None:
                pieces.pieces[member] = [piece]
            else:
                known.append(piece)
            if self.first_ms is None:
                self.first_ms = ms

    def _other_delta(self, pieces: BlockPieces, delta: JsonObject, ms: int | None) -> None:
        block, kind = pieces.block, delta.get("type")
        if kind == "citations_delta":
            block["citations"] = [*items(block.get("citations")), delta.get("citation")]
        elif kind == "signature_delta":
            block["signature"] = delta.get("signature")
        elif kind == "compaction_delta":
            block.update({k: v for k, v in delta.items() if k != "type" and v is not None})
            self.note_content(ms)
        elif not is_empty(delta):
            block["deltas"] = [*items(block.get("deltas")), delta]

    def _end_message(self, value: JsonObject) -> None:
        """Overwrite members of the start."""
        changes: dict[str, Any] = {k: v for k, v in obj(value.get("delta")).items() if v is not None}
        for key in ("context_management", "diagnostics", "input_transformations", "container"):
            if value.get(key) is not None:
                changes[key] = value[key]
        self._message = {**self._message, **changes}
        usage = value.get("usage")
        if isinstance(usage, dict) and not is_empty_report(self._usage, usage):
            self._take_usage(usage)
        if string(changes.get("stop_reason")):
            self.finished = True

    def _take_usage(self, usage: JsonObject) -> None:
        """Take the cumulative usage of a `message_delta`.

        Some gateways report the whole prompt at the start and its cached part only here, without or with the same
        input: then the input includes this part.
        """
        before, now = number(obj(self._usage).get("input_tokens")), number(usage.get("input_tokens"))
        late = cache_tokens(usage) if not cache_tokens(obj(self._usage)) else 0
        if late and before is not None and now in (None, 0, before):
            self.cache_inside = late <= before
            if self.cache_inside and now == 0:
                usage = {name: count for name, count in usage.items() if name != "input_tokens"}
        elif now and now != before:
            self.cache_inside = False
        if not self.output_is_final and number(usage.get("output_tokens")) is not None:
            self._usage = without_output(self._usage)
            self.output_is_final = True
        self._usage = latest_usage(self._usage, usage)

    def value(self) -> JsonObject:
        content = [pieces.value() for pieces in self._blocks]
        message = {**self._message, "content": content, "usage": self._usage}
        return {**message, "abandoned": self._abandoned} if self._abandoned else message
