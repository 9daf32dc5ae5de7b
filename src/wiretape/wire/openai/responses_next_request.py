"""How a history grows in the Responses API: `input`, or only what is new where the provider holds the rest.

Each kind of tool call has a kind of result of its own. What the provider ran itself needs none.
"""

from __future__ import annotations

from collections.abc import Sequence

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import is_empty, items, obj, string
from wiretape.wire.next_request import MayBeHeld, assembled, by_id, text_and_parts
from wiretape.wire.openai.responses_stream import ResponseAssembly

_ANSWER_ONLY = ("status", "created_by", "format")


class ResponsesGrower(MayBeHeld):
    def answer(self, response: Response) -> JsonObject:
        return assembled(response, ResponseAssembly())

    def listed(self, given: Json) -> list[Json]:
        return [self.words(given)] if isinstance(given, str) else items(given)

    def words(self, user: str) -> Json:
        return {"role": "user", "content": user}

    def handed_back(self, answer: JsonObject, theirs: Sequence[JsonObject] | None) -> list[Json]:
        return _handed_back(items(answer.get("output")), theirs)

    def results(self, results: Sequence[ToolResult], answer: JsonObject, like: Sequence[JsonObject]) -> list[Json]:
        calls = by_id(map(obj, items(answer.get("output"))), "call_id", "id")
        return [_result(result, calls.get(result.id or "", {})) for result in results]

    def goes_on_from(self, habit: JsonObject, answer: JsonObject) -> JsonObject | None:
        return {} if not is_empty(habit.get("conversation")) else super().goes_on_from(habit, answer)


def _handed_back(output: Sequence[Json], theirs: Sequence[JsonObject] | None) -> list[Json]:
    """The answer's items. `theirs`: those that the client handed back; kinds that it leaves out are left out."""
    kinds = {_kind_of(item) for item in theirs or ()}
    with_id = {_kind_of(item) for item in theirs or () if "id" in item}
    made: list[Json] = []
    for item in output:
        kind = obj(item).get("type")
        if kinds and kind == "reasoning" and kind not in kinds:
            continue
        made.append(_item(item, nameless=kind in kinds and kind not in with_id))
    return made


def _kind_of(item: JsonObject) -> str:
    return string(item.get("type")) or "message"


def _item(raw: Json, nameless: bool) -> Json:
    if not isinstance(raw, dict):
        return raw
    return {
        key: value
        for key, value in raw.items()
        if key not in _ANSWER_ONLY and value is not None and not (nameless and key == "id")
    }


def _result(result: ToolResult, call: JsonObject) -> JsonObject:
    kind = call.get("type")
    kind = kind if isinstance(kind, str) else "custom_tool_call" if result.kind == "custom" else "function_call"
    name = "tool_search_output" if kind == "tool_search_call" else f"{kind}_output"
    output: Json = result.text
    if kind == "tool_search_call":
        return {"type": name, "call_id": result.id, "tools": list(result.parts)}
    if kind == "shell_call":
        output = list(result.parts) or [{"stdout": result.text, "stderr": ""}]
    elif kind == "computer_call":
        output = result.parts[0] if result.parts else result.text
    elif result.parts:
        output = text_and_parts(result, {"type": "input_text", "text": result.text})
    key = "id" if kind == "local_shell_call" else "call_id"
    made: JsonObject = {"type": name, key: result.id, "output": output}
    if kind == "apply_patch_call":
        made["status"] = "failed" if result.is_error else "completed"
    return made
