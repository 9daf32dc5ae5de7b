"""How a history grows at Ollama: `messages`, arguments as objects, results that name their tool."""

from __future__ import annotations

from collections.abc import Sequence

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import JsonObject
from wiretape.wire.growing import InMessages, assembled, beyond, with_role
from wiretape.wire.lenient import is_empty, items, obj
from wiretape.wire.ollama_answers import OllamaAssembly

_HANDED_BACK = ("content", "thinking", "images", "tool_calls")


class OllamaGrower(InMessages):
    def answer(self, response: Response) -> JsonObject:
        return assembled(response, OllamaAssembly())

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
            dropped = ("thinking",) if theirs is not None and "thinking" not in theirs else ()
            kept = {n: said[n] for n in _HANDED_BACK if n not in dropped and not is_empty(said.get(n))}
            made.append({"role": "assistant", "content": "", **kept})
        spelled = [item for item in later if item.get("role") == "tool"]
        for n, result in enumerate(results):
            made.append(_result(result, spelled[min(n, len(spelled) - 1)] if spelled else None))
        if user is not None:
            made.append({"role": "user", "content": user})
        return {**body, "messages": made}


def _result(result: ToolResult, like: JsonObject | None) -> JsonObject:
    item: JsonObject = {"role": "tool", "content": result.text}
    if like is None:
        named = {"tool_name": result.name, "tool_call_id": result.id}
    else:
        named = {"tool_name": result.name, "name": result.name, "tool_call_id": result.id}
        named = {key: value for key, value in named.items() if key in like}
    return {**item, **{key: value for key, value in named.items() if value}}
