"""How a history grows in the Interactions API: steps in `input`, or only what is new where the provider holds the rest.

The answer's steps go back as they came, signatures and what the provider ran included; a result names its call.
"""

from __future__ import annotations

from collections.abc import Sequence

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.gemini.interactions_stream import InteractionAssembly
from wiretape.wire.gemini.payload import Chunks, read_chunks
from wiretape.wire.gemini.steps import CONTENT_TYPES
from wiretape.wire.lenient import UNREADABLE, items, load, obj
from wiretape.wire.next_request import MayBeHeld, by_id, text_and_parts
from wiretape.wire.payload import JsonPayload


class InteractionsGrower(MayBeHeld):
    previous = "previous_interaction_id"

    def answer(self, response: Response) -> JsonObject:
        read = read_chunks(response)
        if isinstance(read, JsonPayload):
            return obj(read.value)
        assembly = InteractionAssembly()
        for event in read.payload.events if isinstance(read, Chunks) else ():
            assembly.add(event)
        return assembly.value()

    def listed(self, given: Json) -> list[Json]:
        """Content that stands there without a step around it is the user's, in one step."""
        if isinstance(given, str):
            return [self.words(given)]
        listed = [given] if isinstance(given, dict) else items(given)
        alone = [part for part in listed if isinstance(part, str) or obj(part).get("type") in CONTENT_TYPES]
        if not alone or len(alone) != len(listed):
            return listed
        parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in alone]
        return [{"type": "user_input", "content": parts}]

    def words(self, user: str) -> Json:
        return {"type": "user_input", "content": [{"type": "text", "text": user}]}

    def handed_back(self, answer: JsonObject, theirs: Sequence[JsonObject] | None) -> list[Json]:
        """`theirs` shows whether the client keeps thoughts."""
        steps = _steps(answer)
        kinds = {step.get("type") for step in theirs or ()}
        thinks = not kinds or "thought" in kinds
        return [step for step in steps if thinks or obj(step).get("type") != "thought"]

    def results(self, results: Sequence[ToolResult], answer: JsonObject, like: Sequence[JsonObject]) -> list[Json]:
        calls = by_id(map(obj, _steps(answer)), "id")
        given = [step for step in like if step.get("type") == "function_result"]
        alike, first = by_id(given, "call_id"), given[0] if given else {}
        return [_result(r, calls.get(r.id or "", {}), alike.get(r.id or "", first)) for r in results]


def _steps(answer: JsonObject) -> list[Json]:
    """An answer's steps. An earlier version's `outputs` may be bare content, which is the model's."""
    steps = items(answer.get("steps") if answer.get("steps") is not None else answer.get("outputs"))
    return [{"type": "model_output", "content": [s]} if obj(s).get("type") in CONTENT_TYPES else s for s in steps]


def _result(result: ToolResult, call: JsonObject, like: JsonObject) -> JsonObject:
    """`call`: what asked for it. `like`: how the client spells it, or any result."""
    made: JsonObject = {"type": "function_result", "call_id": result.id}
    name = result.name or call.get("name")
    if name and (not like or "name" in like):
        made["name"] = name
    made["result"] = _value(result, like.get("result"))
    return {**made, "is_error": True} if result.is_error else made


def _value(result: ToolResult, like: Json) -> Json:
    """Text, an object, or content: as the client gives it."""
    if isinstance(like, dict):
        parsed = load(result.text)
        if parsed is not UNREADABLE and isinstance(parsed, dict):
            return parsed
    if result.parts or isinstance(like, list):
        return text_and_parts(result, {"type": "text", "text": result.text})
    return result.text
