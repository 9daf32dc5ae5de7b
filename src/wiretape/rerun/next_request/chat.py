"""Next requests of chat formats: one message for each answer, and one for each tool result.

Chat Completions with its dialects, Ollama's chat and Cohere's chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.rerun.next_request.base import ListHistory, TurnDelta, answer_of, by_id, text_and_parts, with_role
from wiretape.wire.cohere.stream import CohereAssembler
from wiretape.wire.lenient import is_empty, items, obj, string
from wiretape.wire.ollama.messages import OllamaAssembler
from wiretape.wire.openai.chat_stream import ChatAssembler

_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
_CHAT_COPIED = ("refusal", "function_call", "prefix")
_OLLAMA_COPIED = ("content", "thinking", "images", "tool_calls")
_COHERE_COPIED = ("tool_plan", "content", "tool_calls", "citations")


class MessagePerResult(ListHistory):
    """Formats whose clients append the answer's message, then one message for each tool result.

    `sample` is the message in which the client sent an answer, or a result, in its style sample.
    """

    result_roles: tuple[str, ...] = ("tool",)

    def message(self, answer: JsonObject) -> JsonObject:
        """Return the message of an answer."""
        return obj(answer.get("message"))

    def assistant_message(self, message: JsonObject, sample: JsonObject | None) -> JsonObject:
        """Return the answer's message as the client sends it back."""
        raise NotImplementedError

    def result_message(self, result: ToolResult, message: JsonObject, sample: JsonObject | None) -> JsonObject:
        """Return a tool result as a message. `message` is the answer that requested the tool."""
        raise NotImplementedError

    def tool_names(self, message: JsonObject) -> dict[str, str]:
        """Map the ids of an answer's tool calls to tool names, if results may repeat the names."""
        return {}

    def answer_items(self, answer: JsonObject, later: Sequence[JsonObject]) -> list[Json]:
        message = self.message(answer)
        return [self.assistant_message(message, with_role(later, "assistant"))] if message else []

    def client_items(self, delta: TurnDelta, later: Sequence[JsonObject]) -> list[Json]:
        message = self.message(delta.answer)
        samples = [item for item in later if item.get("role") in self.result_roles]
        names, sample_by_id = self.tool_names(message), by_id(samples, "tool_call_id")
        added: list[Json] = []
        for position, result in enumerate(delta.results):
            id = result.id or ""
            sample = sample_by_id.get(id) or (samples[min(position, len(samples) - 1)] if samples else None)
            added.append(self.result_message(replace(result, name=result.name or names.get(id)), message, sample))
        return added if delta.user is None else [*added, {"role": "user", "content": delta.user}]


class ChatBuilder(MessagePerResult):
    """Continues conversations in `openai.chat`."""

    result_roles = ("tool", "function")

    def read_answer(self, response: Response) -> JsonObject:
        return answer_of(response, ChatAssembler())

    def message(self, answer: JsonObject) -> JsonObject:
        return obj(obj(next(iter(items(answer.get("choices"))), None)).get("message"))

    def assistant_message(self, message: JsonObject, sample: JsonObject | None) -> JsonObject:
        calls = items(message.get("tool_calls")) or [message["tool_calls"]] if message.get("tool_calls") else []
        item: JsonObject = {"role": "assistant", "content": _content(message, sample)}
        item.update({name: message[name] for name in _CHAT_COPIED if not is_empty(message.get(name))})
        if not is_empty(obj(message.get("audio")).get("id")):
            item["audio"] = {"id": message["audio"]["id"]}
        item.update(_reasoning(message, sample))
        if calls:
            item["tool_calls"] = [_call(call) for call in calls]
        return item

    def tool_names(self, message: JsonObject) -> dict[str, str]:
        calls = by_id(map(obj, items(message.get("tool_calls"))), "id")
        return {id: name for id, call in calls.items() if (name := _tool_name(call))}

    def result_message(self, result: ToolResult, message: JsonObject, sample: JsonObject | None) -> JsonObject:
        legacy = obj(message.get("function_call")) if not message.get("tool_calls") else {}
        name = result.name or string(legacy.get("name"))
        content: Json = result.text
        if result.parts or isinstance(obj(sample).get("content"), list):
            content = text_and_parts(result, {"type": "text", "text": result.text})
        if legacy or obj(sample).get("role") == "function":
            return {"role": "function", "name": name, "content": content}
        item: JsonObject = {"role": "tool"}
        if result.id and (sample is None or sample.get("tool_call_id")):
            item["tool_call_id"] = result.id
        if name and ("tool_call_id" not in item or "name" in obj(sample)):  # some dialects link by name only
            item["name"] = name
        item["content"] = content
        return item


def _content(message: JsonObject, sample: JsonObject | None) -> Json:
    content = message.get("content")
    if isinstance(content, list) or sample is None:
        return content
    sampled = sample.get("content")
    reasoning = _reasoning_text(message)
    if reasoning and isinstance(sampled, str) and sampled.lstrip().startswith("<think>"):
        return f"<think>\n{reasoning}\n</think>\n\n{content or ''}"  # the client keeps reasoning in the text
    if not content:
        return sampled if not sampled else ("" if content is None else content)
    return [{"type": "text", "text": content}] if isinstance(sampled, list) else content


def _reasoning(message: JsonObject, sample: JsonObject | None) -> JsonObject:
    """Return the reasoning members that the client sends; without a sample, those of the answer."""
    if sample is None:
        return {name: message[name] for name in _REASONING if not is_empty(message.get(name))}
    text = _reasoning_text(message)
    return {
        name: (message.get(name) or []) if name == "reasoning_details" else text
        for name in _REASONING
        if name in sample
    }


def _reasoning_text(message: JsonObject) -> str:
    return next((message[name] for name in ("reasoning_content", "reasoning") if string(message.get(name))), "")


def _call(raw: Json) -> JsonObject:
    """Return a tool call without the members that only a stream needs."""
    call = {key: value for key, value in obj(raw).items() if key != "index" and value is not None}
    if not is_empty(call.get("function")) and is_empty(call.get("custom")):
        call.pop("custom", None)
    return call


def _tool_name(call: JsonObject) -> str | None:
    return string(obj(call.get("function")).get("name")) or string(obj(call.get("custom")).get("name"))


class OllamaBuilder(MessagePerResult):
    """Continues conversations in `ollama.chat`: results name their tool."""

    def read_answer(self, response: Response) -> JsonObject:
        return answer_of(response, OllamaAssembler())

    def assistant_message(self, message: JsonObject, sample: JsonObject | None) -> JsonObject:
        dropped = ("thinking",) if sample is not None and "thinking" not in sample else ()
        kept = {n: message[n] for n in _OLLAMA_COPIED if n not in dropped and not is_empty(message.get(n))}
        return {"role": "assistant", "content": "", **kept}

    def result_message(self, result: ToolResult, message: JsonObject, sample: JsonObject | None) -> JsonObject:
        links = {"tool_name": result.name, "name": result.name, "tool_call_id": result.id}
        used = ("tool_name", "tool_call_id") if sample is None else sample
        named = {key: value for key, value in links.items() if value and key in used}
        return {"role": "tool", "content": result.text, **named}


class CohereBuilder(MessagePerResult):
    """Continues conversations in `cohere.chat`: results are text or documents."""

    def read_answer(self, response: Response) -> JsonObject:
        return answer_of(response, CohereAssembler())

    def assistant_message(self, message: JsonObject, sample: JsonObject | None) -> JsonObject:
        names = [n for n in _COHERE_COPIED if sample is None or n in sample]
        return {"role": "assistant", **{n: message[n] for n in names if not is_empty(message.get(n))}}

    def result_message(self, result: ToolResult, message: JsonObject, sample: JsonObject | None) -> JsonObject:
        content: Json = result.text
        sampled = items(obj(sample).get("content"))
        if sampled and obj(sampled[0]).get("type") == "document":
            content = text_and_parts(result, {"type": "document", "document": {"data": result.text}})
        elif result.parts or sampled:
            content = text_and_parts(result, {"type": "text", "text": result.text})
        return {"role": "tool", "tool_call_id": result.id, "content": content}
