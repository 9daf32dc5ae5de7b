"""How a history grows in Converse: the answer's message as it is, then a user message that begins with the results."""

from __future__ import annotations

import re
from urllib.parse import quote

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.bedrock.eventstream import is_event_stream, read_events
from wiretape.wire.bedrock.stream import ConverseAssembly, named_events
from wiretape.wire.lenient import items, obj
from wiretape.wire.next_request import ResultsLead, assembled

_MODEL = re.compile(r"(/model/)[^/?]+(/converse(?:-stream)?)(?=$|\?)")


class ConverseGrower(ResultsLead):
    def answer(self, response: Response) -> JsonObject:
        if not is_event_stream(response):
            return assembled(response, ConverseAssembly())
        assembly = ConverseAssembly()
        for event in named_events(read_events(response)):
            assembly.add(event)
        return obj(assembly.value())

    def parts(self, answer: JsonObject, like: JsonObject | None) -> list[Json]:
        parts = items(obj(obj(answer.get("output")).get("message")).get("content"))
        thinks = like is None or any("reasoningContent" in obj(part) for part in items(like.get("content")))
        return [_part(part) for part in parts if thinks or "reasoningContent" not in obj(part)]

    def result(self, result: ToolResult) -> JsonObject:
        content: list[Json] = [{"text": result.text}] if result.text or not result.parts else []
        made: JsonObject = {"toolUseId": result.id, "content": [*content, *result.parts]}
        if result.is_error is not None:
            made["status"] = "error" if result.is_error else "success"
        return {"toolResult": made}

    def retarget(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        name = quote(model, safe="")
        return _MODEL.sub(lambda found: found[1] + name + found[2], url), body


def _part(raw: Json) -> Json:
    """A thought without a signature is handed back without one: an empty member is refused."""
    said = obj(obj(obj(raw).get("reasoningContent")).get("reasoningText"))
    if said and said.get("signature") is None:
        return {"reasoningContent": {"reasoningText": {k: v for k, v in said.items() if v is not None}}}
    return raw
