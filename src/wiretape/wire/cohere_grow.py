"""How a history grows in Cohere's chat: `messages`, a plan with the tool calls, results as text or as documents."""

from __future__ import annotations

from collections.abc import Sequence

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.cohere_stream import CohereAssembly
from wiretape.wire.growing import InMessages, assembled, beyond, text_and_parts, with_role
from wiretape.wire.lenient import is_empty, items, obj

_HANDED_BACK = ("tool_plan", "content", "tool_calls", "citations")


class CohereGrower(InMessages):
    def answer(self, response: Response) -> JsonObject:
        return assembled(response, CohereAssembly())

    def grow(
        self,
        body: JsonObject,
        answer: JsonObject,
        results: Sequence[ToolResult] = (),
        user: str | None = None,
        like: JsonObject | None = None,
    ) -> JsonObject:
        history = items(body.get("messages"))
        later = beyond(history, items(obj(like).get("messages")))
        said = obj(answer.get("message"))
        made = list(history)
        if said:
            theirs = with_role(later, "assistant")
            names = [n for n in _HANDED_BACK if theirs is None or n in theirs]
            made.append({"role": "assistant", **{n: said[n] for n in names if not is_empty(said.get(n))}})
        spelled = [item for item in later if item.get("role") == "tool"]
        for n, result in enumerate(results):
            made.append(_result(result, spelled[min(n, len(spelled) - 1)] if spelled else None))
        if user is not None:
            made.append({"role": "user", "content": user})
        return {**body, "messages": made}


def _result(result: ToolResult, like: JsonObject | None) -> JsonObject:
    content: Json = result.text
    theirs = items(obj(like).get("content"))
    if theirs and obj(theirs[0]).get("type") == "document":
        document = {"type": "document", "document": {"data": result.text}}
        content = text_and_parts(result, document)
    elif result.parts or theirs:
        content = text_and_parts(result, {"type": "text", "text": result.text})
    return {"role": "tool", "tool_call_id": result.id, "content": content}
