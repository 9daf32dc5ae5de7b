"""Next requests of Gemini's generateContent: `contents`, the answer's signed parts, then the function responses.

Code Assist wraps the request in another object. Keys are spelled as the client spells them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.rerun.next_request.base import ListHistory, TurnDelta, by_id, joined_answer, value_at
from wiretape.wire.gemini.generate_stream import GenerateAssembler
from wiretape.wire.gemini.payload import Chunks, read_chunks, spelled, unwrapped
from wiretape.wire.lenient import NOT_JSON, items, load, obj, string
from wiretape.wire.payload import JsonPayload

_WRAPPERS = ("request", "generateContentRequest")
_MODEL = re.compile(r"(/)[^/:?]+(:(?:streamGenerateContent|generateContent)(?=$|\?))")
_TEXT_MEMBERS = ("output", "result", "return_value", "content", "error")


class GenerateContentBuilder(ListHistory):
    """Continues conversations in `gemini.generate`."""

    def history_path(self, body: JsonObject) -> tuple[str, ...]:
        if "contents" not in body:
            for name in _WRAPPERS:
                if isinstance(body.get(name), dict):
                    return (name, "contents")
        return ("contents",)

    def read_answer(self, response: Response) -> JsonObject:
        read = read_chunks(response)
        if isinstance(read, JsonPayload):
            return unwrapped(read.value)
        return joined_answer(read.payload, GenerateAssembler()) if isinstance(read, Chunks) else {}

    def history(self, body: JsonObject) -> list[Json]:
        value = value_at(body, self.history_path(body))
        return [value] if obj(value) else items(value)  # one content may appear without a list

    def answer_items(self, answer: JsonObject, later: Sequence[JsonObject]) -> list[Json]:
        content = obj(obj(next(iter(items(answer.get("candidates"))), None)).get("content"))
        parts = _sent_parts(items(content.get("parts")), later)
        return [{"role": "model", "parts": parts}] if parts else []

    def client_items(self, delta: TurnDelta, later: Sequence[JsonObject]) -> list[Json]:
        samples = [one for item in later for part in items(item.get("parts")) if (one := _function_response(part))]
        sample_by_id = by_id(samples, "id")
        parts: list[Json] = []
        for position, result in enumerate(delta.results):
            nearest = samples[min(position, len(samples) - 1)] if samples else {}
            parts.append(_result_part(result, sample_by_id.get(result.id or "") or nearest))
        added: list[Json] = []
        if parts:
            role = next((i.get("role") for i in later if any(map(_function_response, items(i.get("parts"))))), "user")
            added.append({"role": role or "user", "parts": parts})
        if delta.user is not None:
            added.append({"role": "user", "parts": [{"text": delta.user}]})
        return added

    def with_model(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        if "model" in body:  # Code Assist
            return url, {**body, "model": model}
        return _MODEL.sub(lambda found: found[1] + model + found[2], url), body


def _sent_parts(parts: Sequence[Json], later: Sequence[JsonObject]) -> list[Json]:
    """Return the answer's parts that the client sends back: thoughts if its sample has them, no empty texts."""
    sample = next((item for item in later if item.get("role") == "model"), None)
    sends_thoughts = sample is None or any(obj(part).get("thought") is True for part in items(sample.get("parts")))
    return [p for p in parts if p and p != {"text": ""} and (sends_thoughts or obj(p).get("thought") is not True)]


def _function_response(part: Json) -> JsonObject:
    return obj(obj(part).get(spelled(obj(part), "functionResponse")))


def _result_part(result: ToolResult, sample: JsonObject) -> JsonObject:
    response: JsonObject = {"name": result.name or "", "response": _response_value(result, sample.get("response"))}
    if result.id and (not sample or "id" in sample):
        response["id"] = result.id
    if result.parts:
        response["parts"] = list(result.parts)
    return {"functionResponse": response}


def _response_value(result: ToolResult, sample: Json) -> Json:
    """Return the tool's JSON object, or its text in an object with the member that the client uses."""
    if isinstance(sample, str):
        return result.text
    parsed = load(result.text) if result.text[:1] == "{" else NOT_JSON
    keys = list(obj(sample))
    single = len(keys) == 1 and keys[0] in _TEXT_MEMBERS and isinstance(obj(sample)[keys[0]], str)
    if isinstance(parsed, dict) and not single:
        return parsed
    if result.is_error:
        return {"error": result.text}
    return {string(keys[0]) or "output" if single else "output": result.text}
