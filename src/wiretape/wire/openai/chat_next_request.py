"""How a history grows in Chat Completions and its dialects: `messages`, one item for each answer and each result."""

from __future__ import annotations

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import is_empty, items, obj, string
from wiretape.wire.next_request import ItemForEach, assembled, by_id, text_and_parts
from wiretape.wire.openai.chat_stream import ChatAssembly

_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
_HANDED_BACK = ("refusal", "function_call", "prefix")


class ChatGrower(ItemForEach):
    results_by = ("tool", "function")

    def answer(self, response: Response) -> JsonObject:
        return assembled(response, ChatAssembly())

    def message(self, answer: JsonObject) -> JsonObject:
        return obj(obj(next(iter(items(answer.get("choices"))), None)).get("message"))

    def assistant(self, said: JsonObject, like: JsonObject | None) -> JsonObject:
        calls = items(said.get("tool_calls")) or [said["tool_calls"]] if said.get("tool_calls") else []
        item: JsonObject = {"role": "assistant", "content": _content(said, like)}
        item.update({name: said[name] for name in _HANDED_BACK if not is_empty(said.get(name))})
        if not is_empty(obj(said.get("audio")).get("id")):
            item["audio"] = {"id": said["audio"]["id"]}
        item.update(_thoughts(said, like))
        if calls:
            item["tool_calls"] = [_call(call) for call in calls]
        return item

    def names(self, said: JsonObject) -> dict[str, str]:
        calls = by_id(map(obj, items(said.get("tool_calls"))), "id")
        return {id: name for id, call in calls.items() if (name := _name_of(call))}

    def result(self, result: ToolResult, said: JsonObject, like: JsonObject | None) -> JsonObject:
        """Some clients name the tool, some dialects have nothing but the name."""
        legacy = obj(said.get("function_call")) if not said.get("tool_calls") else {}
        name = result.name or string(legacy.get("name"))
        content: Json = result.text
        if result.parts or isinstance(obj(like).get("content"), list):
            content = text_and_parts(result, {"type": "text", "text": result.text})
        if legacy or obj(like).get("role") == "function":
            return {"role": "function", "name": name, "content": content}
        item: JsonObject = {"role": "tool"}
        if result.id and (like is None or like.get("tool_call_id")):
            item["tool_call_id"] = result.id
        if name and ("tool_call_id" not in item or "name" in obj(like)):
            item["name"] = name
        item["content"] = content
        return item


def _content(said: JsonObject, like: JsonObject | None) -> Json:
    content = said.get("content")
    if isinstance(content, list) or like is None:
        return content
    theirs = like.get("content")
    thought = _thought(said)
    if thought and isinstance(theirs, str) and theirs.lstrip().startswith("<think>"):
        return f"<think>\n{thought}\n</think>\n\n{content or ''}"  # clients that keep thoughts in the text
    if not content:
        return theirs if not theirs else ("" if content is None else content)
    return [{"type": "text", "text": content}] if isinstance(theirs, list) else content


def _thoughts(said: JsonObject, like: JsonObject | None) -> JsonObject:
    """What the model thought, under the names that the client gives it; under its own where nothing shows them."""
    if like is None:
        return {name: said[name] for name in _THOUGHTS if not is_empty(said.get(name))}
    text = _thought(said)
    made: JsonObject = {}
    for name in _THOUGHTS:
        if name in like:
            made[name] = (said.get(name) or []) if name == "reasoning_details" else text
    return made


def _thought(said: JsonObject) -> str:
    return next((said[name] for name in ("reasoning_content", "reasoning") if string(said.get(name))), "")


def _call(raw: Json) -> JsonObject:
    """A tool call without what only a stream needs."""
    call = {key: value for key, value in obj(raw).items() if key != "index" and value is not None}
    if not is_empty(call.get("function")) and is_empty(call.get("custom")):
        call.pop("custom", None)
    return call


def _name_of(call: JsonObject) -> str | None:
    return string(obj(call.get("function")).get("name")) or string(obj(call.get("custom")).get("name"))
