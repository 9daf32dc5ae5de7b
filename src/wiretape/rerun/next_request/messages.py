"""Next requests of formats whose next user message starts with the tool results.

Anthropic's Messages API, Bedrock's Converse, and Bedrock's InvokeModel, where each vendor has its own format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.rerun.next_request.base import (
    ListHistory,
    TurnDelta,
    answer_of,
    joined_answer,
    text_and_parts,
    with_role,
)
from wiretape.rerun.next_request.chat import ChatBuilder
from wiretape.wire.anthropic.stream import AnthropicAssembler
from wiretape.wire.bedrock.converse_stream import ConverseAssembler, named_events
from wiretape.wire.bedrock.event_stream import is_event_stream, read_events
from wiretape.wire.bedrock.invoke import Vendor, vendor_events, vendor_of, vendor_of_request
from wiretape.wire.decoding import StreamAssembler
from wiretape.wire.lenient import is_empty, items, obj, string
from wiretape.wire.openai.chat_stream import ChatAssembler
from wiretape.wire.payload import EventPayload, JsonPayload, read_payload

_REASONING = frozenset({"thinking", "redacted_thinking"})
_DIRECT = {"type": "direct"}
_MODEL = re.compile(r"(/model/)[^/?]+(/(?:converse(?:-stream)?|invoke(?:-with-response-stream)?))(?=$|\?)")


class ResultsFirst(ListHistory):
    """Formats whose clients append the answer's parts, then one user message that starts with the tool results."""

    def answer_parts(self, answer: JsonObject, sample: JsonObject | None) -> list[Json]:
        """Return the parts that the client sends back. `sample` is the message in which it sent an answer."""
        raise NotImplementedError

    def result_part(self, result: ToolResult) -> JsonObject:
        """Return a tool result as a part."""
        raise NotImplementedError

    def text_part(self, text: str) -> JsonObject:
        """Return a text as a part."""
        return {"text": text}

    def answer_items(self, answer: JsonObject, later: Sequence[JsonObject]) -> list[Json]:
        parts = self.answer_parts(answer, with_role(later, "assistant"))
        return [{"role": "assistant", "content": parts}] if parts else []

    def client_items(self, delta: TurnDelta, later: Sequence[JsonObject]) -> list[Json]:
        parts: list[Json] = [self.result_part(result) for result in delta.results]
        if delta.user is not None:
            parts.append(self.text_part(delta.user))
        return [{"role": "user", "content": parts}] if parts else []


class AnthropicBuilder(ResultsFirst):
    """Continues conversations in `anthropic.messages`: blocks and their signatures are sent back unchanged."""

    def read_answer(self, response: Response) -> JsonObject:
        return answer_of(response, AnthropicAssembler())

    def answer_parts(self, answer: JsonObject, sample: JsonObject | None) -> list[Json]:
        content = answer.get("content")
        blocks = [self.text_part(content)] if isinstance(content, str) else items(content)
        sampled = {string(obj(block).get("type")) for block in items(obj(sample).get("content"))}
        sends_reasoning = sample is None or not _REASONING.isdisjoint(sampled)
        return [
            _block(block) for block in blocks if sends_reasoning or string(obj(block).get("type")) not in _REASONING
        ]

    def result_part(self, result: ToolResult) -> JsonObject:
        content: Json = result.text
        if result.parts:
            content = text_and_parts(result, self.text_part(result.text))
        part: JsonObject = {"type": "tool_result", "tool_use_id": result.id, "content": content}
        return {**part, "is_error": True} if result.is_error else part

    def text_part(self, text: str) -> JsonObject:
        return {"type": "text", "text": text}

    def client_items(self, delta: TurnDelta, later: Sequence[JsonObject]) -> list[Json]:
        if delta.user is not None and not delta.results:
            return [{"role": "user", "content": delta.user}]
        return super().client_items(delta, later)

    def next_body(self, body: JsonObject, delta: TurnDelta) -> JsonObject:
        thread = obj(body.get("thread"))
        if "previous_message_id" in thread and delta.answer.get("id"):
            body = {**body, "thread": {**thread, "previous_message_id": delta.answer["id"]}}
        return super().next_body(body, delta)

    def stored_history(self, body: JsonObject) -> JsonObject:
        return {"thread": body["thread"]} if "previous_message_id" in obj(body.get("thread")) else {}


def _block(raw: Json) -> Json:
    """Return a block without empty citations and without a direct caller, which only answers have."""
    if not isinstance(raw, dict):
        return raw
    dropped = ("citations", "caller") if raw.get("caller") in (None, _DIRECT) else ("citations",)
    return {k: v for k, v in raw.items() if k not in dropped or (not is_empty(v) and v != _DIRECT)}


class ModelInPath:
    """Bedrock's formats, which name the model in the URL."""

    def with_model(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        name = quote(model, safe="")
        return _MODEL.sub(lambda found: found[1] + name + found[2], url), body


class ConverseBuilder(ModelInPath, ResultsFirst):
    """Continues conversations in `bedrock.converse`."""

    def read_answer(self, response: Response) -> JsonObject:
        if not is_event_stream(response):
            return answer_of(response, ConverseAssembler())
        return joined_answer(EventPayload(named_events(read_events(response))), ConverseAssembler())

    def answer_parts(self, answer: JsonObject, sample: JsonObject | None) -> list[Json]:
        parts = items(obj(obj(answer.get("output")).get("message")).get("content"))
        sampled = items(obj(sample).get("content"))
        sends_reasoning = sample is None or any("reasoningContent" in obj(part) for part in sampled)
        return [_converse_part(part) for part in parts if sends_reasoning or "reasoningContent" not in obj(part)]

    def result_part(self, result: ToolResult) -> JsonObject:
        part: JsonObject = {"toolUseId": result.id, "content": text_and_parts(result, {"text": result.text})}
        if result.is_error is not None:
            part["status"] = "error" if result.is_error else "success"
        return {"toolResult": part}


def _converse_part(raw: Json) -> Json:
    """Return a part as Bedrock accepts it: an empty signature is omitted."""
    reasoning = obj(obj(obj(raw).get("reasoningContent")).get("reasoningText"))
    if reasoning and reasoning.get("signature") is None:
        return {"reasoningContent": {"reasoningText": {k: v for k, v in reasoning.items() if v is not None}}}
    return raw


_VENDOR_BUILDERS: Final[Mapping[Vendor, ListHistory]] = {
    "anthropic.messages": AnthropicBuilder(),
    "bedrock.converse": ConverseBuilder(),
    "openai.chat": ChatBuilder(),
}
_VENDOR_ASSEMBLERS: Final[Mapping[Vendor, type[StreamAssembler]]] = {
    "anthropic.messages": AnthropicAssembler,
    "bedrock.converse": ConverseAssembler,
    "openai.chat": ChatAssembler,
}


class InvokeBuilder(ModelInPath):
    """Continues conversations in `bedrock.invoke`, in the format of the model's vendor.

    A plain prompt (Llama, Titan) has no history: each program writes the conversation into the text in its own way.
    """

    def history_path(self, body: JsonObject) -> tuple[str, ...]:
        builder = self._vendor_builder(body)
        return builder.history_path(body) if builder is not None else ()

    def read_answer(self, response: Response) -> JsonObject:
        payload = vendor_events(read_events(response)) if is_event_stream(response) else read_payload(response)
        if isinstance(payload, JsonPayload):
            return obj(payload.value)
        vendor = vendor_of(payload) if isinstance(payload, EventPayload) else None
        return joined_answer(payload, _VENDOR_ASSEMBLERS[vendor]()) if vendor is not None else {}

    def next_body(self, body: JsonObject, delta: TurnDelta) -> JsonObject:
        builder = self._vendor_builder(body)
        return builder.next_body(body, delta) if builder is not None else body

    def stored_history(self, body: JsonObject) -> JsonObject:
        builder = self._vendor_builder(body)
        return builder.stored_history(body) if builder is not None else {}

    @staticmethod
    def _vendor_builder(body: JsonObject) -> ListHistory | None:
        vendor = vendor_of_request(body)
        return _VENDOR_BUILDERS[vendor] if vendor is not None else None
