"""How a history grows at Ollama: `messages`, arguments as objects, results that name their tool."""

from __future__ import annotations

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import JsonObject
from wiretape.wire.lenient import is_empty
from wiretape.wire.next_request import ItemForEach, assembled
from wiretape.wire.ollama.answers import OllamaAssembly

_HANDED_BACK = ("content", "thinking", "images", "tool_calls")


class OllamaGrower(ItemForEach):
    def answer(self, response: Response) -> JsonObject:
        return assembled(response, OllamaAssembly())

    def assistant(self, said: JsonObject, like: JsonObject | None) -> JsonObject:
        dropped = ("thinking",) if like is not None and "thinking" not in like else ()
        kept = {n: said[n] for n in _HANDED_BACK if n not in dropped and not is_empty(said.get(n))}
        return {"role": "assistant", "content": "", **kept}

    def result(self, result: ToolResult, said: JsonObject, like: JsonObject | None) -> JsonObject:
        item: JsonObject = {"role": "tool", "content": result.text}
        if like is None:
            named = {"tool_name": result.name, "tool_call_id": result.id}
        else:
            named = {"tool_name": result.name, "name": result.name, "tool_call_id": result.id}
            named = {key: value for key, value in named.items() if key in like}
        return {**item, **{key: value for key, value in named.items() if value}}
