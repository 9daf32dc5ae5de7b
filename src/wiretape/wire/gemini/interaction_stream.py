"""Joins a stream of the Interactions API into the interaction of an unstreamed call.

Events of an earlier version (`content.start` and others, with `outputs`) are read as steps.
"""

from __future__ import annotations

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import StreamAssembler
from wiretape.wire.failures import has_error
from wiretape.wire.gemini.interaction_steps import CONTENT_TYPES
from wiretape.wire.lenient import NOT_JSON, is_empty, items, load, number, obj, string
from wiretape.wire.payload import Event
from wiretape.wire.token_counts import latest_usage

_ENDS = ("interaction.completed", "interaction.complete", "interaction.cancelled", "interaction.failed")
_QUIET = ("interaction.connected", "ping", "done")


class StepPieces:
    """One unfinished step."""

    __slots__ = ("_arguments", "_texts", "step")

    def __init__(self, step: JsonObject) -> None:
        self.step = dict(step)
        self._arguments: list[str] = []
        self._texts: list[str] | None = None  # the pieces of the last text

    def add(self, delta: JsonObject) -> bool:
        """Add a delta; return whether it has content."""
        kind = string(delta.get("type")) or ""
        if kind == "text" and isinstance(delta.get("text"), str):
            return self._text(delta["text"])
        self._join_text()
        if kind == "arguments_delta":
            piece = delta.get("arguments", delta.get("partial_arguments"))
            if isinstance(piece, str):
                self._arguments.append(piece)
                return bool(piece)
        if kind == "thought_summary":
            return self._summary(delta.get("content"))
        if kind == "thought_signature":
            self.step["signature"] = (string(self.step.get("signature")) or "") + (string(delta.get("signature")) or "")
            return False
        if kind == "text_annotation_delta":
            self._add_annotations(items(delta.get("annotations")))
            return False
        if kind in CONTENT_TYPES:
            self.step["content"] = [*self._content(), delta]
        elif kind == self.step.get("type"):
            self.step.update({k: v for k, v in delta.items() if k != "type" and v is not None})
        elif not is_empty(delta):
            self.step["deltas"] = [*items(self.step.get("deltas")), delta]
        return not is_empty(delta)

    def _content(self) -> list[Json]:
        content = self.step.get("content")
        return content if isinstance(content, list) else [] if content is None else [content]

    def _text(self, text: str) -> bool:
        if not text:
            return False
        if self._texts is None:
            if self.step.get("type") == "text":  # content of an earlier version, without a step
                self._texts = [string(self.step.get("text")) or ""]
            else:
                content = self._content()
                last = obj(content[-1]) if content else {}
                grows = last.get("type") == "text" and "annotations" not in last
                self._texts = [string(last.get("text")) or ""] if grows else []
                self.step["content"] = [*(content[:-1] if grows else content), {"type": "text", "text": ""}]
        self._texts.append(text)
        return True

    def _join_text(self) -> None:
        if self._texts is None:
            return
        text, self._texts = "".join(self._texts), None
        if self.step.get("type") == "text":
            self.step["text"] = text
        else:
            self.step["content"][-1] = {**self.step["content"][-1], "text": text}

    def _summary(self, content: Json) -> bool:
        """Append to the summary; consecutive texts are joined."""
        summary = items(self.step.get("summary"))
        text, last = obj(content).get("text"), obj(summary[-1]) if summary else {}
        if isinstance(text, str) and last.get("type") == "text":
            self.step["summary"] = [*summary[:-1], {**last, "text": (string(last.get("text")) or "") + text}]
        elif content is not None:
            self.step["summary"] = [*summary, content]
        return not is_empty(content)

    def _add_annotations(self, found: list[Json]) -> None:
        content = self._content()
        if content and isinstance(content[-1], dict):
            last = content[-1]
            content = [*content[:-1], {**last, "annotations": [*items(last.get("annotations")), *found]}]
        else:
            content = [*content, {"type": "text", "text": "", "annotations": found}]
        self.step["content"] = content

    def value(self) -> JsonObject:
        self._join_text()
        text = "".join(self._arguments)
        if not text:
            return self.step
        parsed = load(text)
        return {**self.step, "arguments": text if parsed is NOT_JSON else parsed}


class InteractionAssembler(StreamAssembler):
    """Joins the events of one stream; `value` is the interaction so far."""

    __slots__ = ("_interaction", "_steps", "_usage")

    def __init__(self) -> None:
        super().__init__()
        self._interaction: JsonObject = {}
        self._steps: dict[int, StepPieces] = {}
        self._usage: JsonObject | None = None

    def add(self, event: Event) -> None:
        value = event.value
        if not isinstance(value, dict):
            self.unknown_events.append(value)
            return
        kind = string(value.get("event_type")) or string(value.get("type")) or event.name
        if kind.startswith("interaction.") and kind not in _QUIET:
            self._update(value, kind)
        elif kind in ("step.start", "content.start") and isinstance(value.get("step", value.get("content")), dict):
            self._start(value, event.ms)
        elif kind in ("step.delta", "content.delta") and isinstance(value.get("delta"), dict):
            pieces = self._steps.get(self._index(value))
            if pieces is None:
                pieces = self._steps[self._index(value)] = StepPieces({"type": "model_output"})
            if pieces.add(value["delta"]):
                self.note_content(event.ms)
        elif kind in ("step.stop", "content.stop"):
            self._usage = latest_usage(self._usage, value.get("usage"))
        elif kind == "error" or has_error(value):
            self.error = value
        elif kind not in _QUIET:
            self.unknown_events.append(value)

    def _update(self, value: JsonObject, kind: str) -> None:
        interaction = obj(value.get("interaction"))
        if not interaction:
            interaction = {k: value[k] for k in ("status", "error") if value.get(k) is not None}
        self._interaction = {**self._interaction, **{k: v for k, v in interaction.items() if v is not None}}
        self._usage = latest_usage(self._usage, interaction.get("usage"))
        if kind in _ENDS:
            self.finished = True

    def _start(self, value: JsonObject, ms: int | None) -> None:
        step = value.get("step", value.get("content"))
        self._steps[self._index(value)] = StepPieces(obj(step))
        has_content = any(not is_empty(v) for k, v in obj(step).items() if k not in ("type", "signature"))
        if has_content:
            self.note_content(ms)

    @staticmethod
    def _index(value: JsonObject) -> int:
        return number(value.get("index")) or 0

    def value(self) -> JsonObject:
        whole = {**self._interaction, "usage": self._usage}
        if self._steps:
            whole["steps"] = [self._steps[index].value() for index in sorted(self._steps)]
        return whole
