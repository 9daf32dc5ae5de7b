"""How a history grows in Cohere's chat: `messages`, a plan with the tool calls, results as text or as documents."""

from __future__ import annotations

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.cohere.stream import CohereAssembly
from wiretape.wire.lenient import is_empty, items, obj
from wiretape.wire.next_request import ItemForEach, assembled, text_and_parts

_HANDED_BACK = ("tool_plan", "content", "tool_calls", "citations")


class CohereGrower(ItemForEach):
    def answer(self, response: Response) -> JsonObject:
        return assembled(response, CohereAssembly())

    def assistant(self, said: JsonObject, like: JsonObject | None) -> JsonObject:
        names = [n for n in _HANDED_BACK if like is None or n in like]
        return {"role": "assistant", **{n: said[n] for n in names if not is_empty(said.get(n))}}

    def result(self, result: ToolResult, said: JsonObject, like: JsonObject | None) -> JsonObject:
        content: Json = result.text
        theirs = items(obj(like).get("content"))
        if theirs and obj(theirs[0]).get("type") == "document":
            document = {"type": "document", "document": {"data": result.text}}
            content = text_and_parts(result, document)
        elif result.parts or theirs:
            content = text_and_parts(result, {"type": "text", "text": result.text})
        return {"role": "tool", "tool_call_id": result.id, "content": content}
