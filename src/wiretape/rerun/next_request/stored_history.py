"""Next requests of formats whose history may be stored by the provider: OpenAI Responses and Gemini Interactions.

Their `input` is the whole history, or only the new items if the request names the previous answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.rerun.next_request.base import (
    ModelInBody,
    TurnDelta,
    answer_of,
    by_id,
    items_after,
    joined_answer,
    text_and_parts,
)
from wiretape.wire.gemini.interaction_steps import CONTENT_TYPES
from wiretape.wire.gemini.interaction_stream import InteractionAssembler
from wiretape.wire.gemini.payload import Chunks, read_chunks
from wiretape.wire.lenient import NOT_JSON, is_empty, items, load, obj, string
from wiretape.wire.openai.responses_stream import ResponseAssembler

_ANSWER_ONLY = ("status", "created_by", "format")


class StoredHistory(ModelInBody):
    """Formats whose history may be stored by the provider.

    `later` are the items that follow this history in the style sample; None without a sample.
    """

    previous_member = "previous_response_id"  # the member that names the previous answer

    def history_path(self, body: JsonObject) -> tuple[str, ...]:
        return ("input",)

    def read_answer(self, response: Response) -> JsonObject:
        raise NotImplementedError

    def history_items(self, given: Json) -> list[Json]:
        """Return the value of `input` as a list of items."""
        raise NotImplementedError

    def user_item(self, text: str) -> Json:
        """Return the user's text as an item."""
        raise NotImplementedError

    def answer_items(self, answer: JsonObject, later: Sequence[JsonObject] | None) -> list[Json]:
        """Return the answer's items that the client sends back."""
        raise NotImplementedError

    def result_items(
        self, results: Sequence[ToolResult], answer: JsonObject, later: Sequence[JsonObject]
    ) -> list[Json]:
        """Return the tool results as items. `answer` requested the tools."""
        raise NotImplementedError

    def next_body(self, body: JsonObject, delta: TurnDelta) -> JsonObject:
        sample, answer = delta.style_sample, delta.answer
        stored = self.reference(sample if sample is not None else body, answer)
        before = [] if stored is not None else self.history_items(body.get("input"))
        later = items_after(before, self.history_items(sample.get("input"))) if sample is not None else None
        added = self.result_items(delta.results, answer, later or ())
        if delta.user is not None:
            added.append(self.user_item(delta.user))
        rest = {name: value for name, value in body.items() if name != self.previous_member}
        if stored is not None:
            return {**rest, **stored, "input": added}
        return {**rest, "input": [*before, *self.answer_items(answer, later), *added]}

    def reference(self, sample: JsonObject, answer: JsonObject) -> JsonObject | None:
        """Return the members that refer to the stored history after `answer`; None if this client sends all of it."""
        if is_empty(sample.get(self.previous_member)) or not answer.get("id"):
            return None
        return {self.previous_member: answer["id"]}

    def stored_history(self, body: JsonObject) -> JsonObject:
        name = self.previous_member
        return {name: body[name]} if body.get(name) is not None else {}


class ResponsesBuilder(StoredHistory):
    """Continues conversations in `openai.responses`: each kind of tool call has its own kind of result."""

    def read_answer(self, response: Response) -> JsonObject:
        return answer_of(response, ResponseAssembler())

    def history_items(self, given: Json) -> list[Json]:
        return [self.user_item(given)] if isinstance(given, str) else items(given)

    def user_item(self, text: str) -> Json:
        return {"role": "user", "content": text}

    def answer_items(self, answer: JsonObject, later: Sequence[JsonObject] | None) -> list[Json]:
        kinds = {_kind_of(item) for item in later or ()}
        with_id = {_kind_of(item) for item in later or () if "id" in item}
        sent: list[Json] = []
        for item in items(answer.get("output")):
            kind = string(obj(item).get("type"))
            if kinds and kind == "reasoning" and kind not in kinds:
                continue  # this client does not send reasoning back
            sent.append(_sent_item(item, without_id=kind in kinds and kind not in with_id))
        return sent

    def result_items(
        self, results: Sequence[ToolResult], answer: JsonObject, later: Sequence[JsonObject]
    ) -> list[Json]:
        calls = by_id(map(obj, items(answer.get("output"))), "call_id", "id")
        return [_output_item(result, calls.get(result.id or "", {})) for result in results]

    def reference(self, sample: JsonObject, answer: JsonObject) -> JsonObject | None:
        return {} if not is_empty(sample.get("conversation")) else super().reference(sample, answer)


def _kind_of(item: JsonObject) -> str:
    return string(item.get("type")) or "message"


def _sent_item(raw: Json, without_id: bool) -> Json:
    if not isinstance(raw, dict):
        return raw
    dropped = (*_ANSWER_ONLY, "id") if without_id else _ANSWER_ONLY
    return {key: value for key, value in raw.items() if key not in dropped and value is not None}


def _output_item(result: ToolResult, call: JsonObject) -> JsonObject:
    kind = call.get("type")
    kind = kind if isinstance(kind, str) else "custom_tool_call" if result.kind == "custom" else "function_call"
    if kind == "tool_search_call":
        return {"type": "tool_search_output", "call_id": result.id, "tools": list(result.parts)}
    output: Json = result.text
    if kind == "shell_call":
        output = list(result.parts) or [{"stdout": result.text, "stderr": ""}]
    elif kind == "computer_call":
        output = result.parts[0] if result.parts else result.text
    elif result.parts:
        output = text_and_parts(result, {"type": "input_text", "text": result.text})
    key = "id" if kind == "local_shell_call" else "call_id"
    item: JsonObject = {"type": f"{kind}_output", key: result.id, "output": output}
    if kind == "apply_patch_call":
        item["status"] = "failed" if result.is_error else "completed"
    return item


class InteractionsBuilder(StoredHistory):
    """Continues conversations in `gemini.interactions`: steps are sent back unchanged, with their signatures."""

    previous_member = "previous_interaction_id"

    def read_answer(self, response: Response) -> JsonObject:
        read = read_chunks(response)
        return joined_answer(read.payload if isinstance(read, Chunks) else read, InteractionAssembler())

    def history_items(self, given: Json) -> list[Json]:
        """Return the steps of `input`. Content without a step belongs to one step of the user."""
        if isinstance(given, str):
            return [self.user_item(given)]
        listed = [given] if isinstance(given, dict) else items(given)
        if not listed or not all(
            isinstance(part, str) or string(obj(part).get("type")) in CONTENT_TYPES for part in listed
        ):
            return listed
        parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in listed]
        return [{"type": "user_input", "content": parts}]

    def user_item(self, text: str) -> Json:
        return {"type": "user_input", "content": [{"type": "text", "text": text}]}

    def answer_items(self, answer: JsonObject, later: Sequence[JsonObject] | None) -> list[Json]:
        kinds = {string(step.get("type")) for step in later or ()}
        sends_thoughts = not kinds or "thought" in kinds
        return [step for step in _steps(answer) if sends_thoughts or obj(step).get("type") != "thought"]

    def result_items(
        self, results: Sequence[ToolResult], answer: JsonObject, later: Sequence[JsonObject]
    ) -> list[Json]:
        calls = by_id(map(obj, _steps(answer)), "id")
        samples = [step for step in later if step.get("type") == "function_result"]
        sample_by_id, first = by_id(samples, "call_id"), samples[0] if samples else {}
        return [_result_step(r, calls.get(r.id or "", {}), sample_by_id.get(r.id or "", first)) for r in results]


def _steps(answer: JsonObject) -> list[Json]:
    """Return an answer's steps. The `outputs` of an earlier API version may be content without a step."""
    steps = items(answer.get("steps") if answer.get("steps") is not None else answer.get("outputs"))
    return [
        {"type": "model_output", "content": [s]} if string(obj(s).get("type")) in CONTENT_TYPES else s for s in steps
    ]


def _result_step(result: ToolResult, call: JsonObject, sample: JsonObject) -> JsonObject:
    step: JsonObject = {"type": "function_result", "call_id": result.id}
    name = result.name or call.get("name")
    if name and (not sample or "name" in sample):
        step["name"] = name
    step["result"] = _result_value(result, sample.get("result"))
    return {**step, "is_error": True} if result.is_error else step


def _result_value(result: ToolResult, sample: Json) -> Json:
    """Return the result as text, an object or a list of content, like the client's sample."""
    if isinstance(sample, dict):
        parsed = load(result.text)
        if parsed is not NOT_JSON and isinstance(parsed, dict):
            return parsed
    if result.parts or isinstance(sample, list):
        return text_and_parts(result, {"type": "text", "text": result.text})
    return result.text
