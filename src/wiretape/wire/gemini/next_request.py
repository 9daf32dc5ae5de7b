"""How a history grows in generateContent: `contents`, the answer's signed parts, then what the functions gave.

Code Assist wraps the request once more; keys are spelled as the client spells them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.gemini.keys import spelled
from wiretape.wire.gemini.payload import Chunks, read_chunks, unwrapped
from wiretape.wire.gemini.stream import GenerateAssembly
from wiretape.wire.lenient import UNREADABLE, items, load, obj, string
from wiretape.wire.next_request import InList, by_id, named
from wiretape.wire.payload import JsonPayload

_WRAPPERS = ("request", "generateContentRequest")
_MODEL = re.compile(r"(/)[^/:?]+(:(?:streamGenerateContent|generateContent)(?=$|\?))")
_SAYS = ("output", "result", "return_value", "content", "error")


class GenerateGrower(InList):
    def history(self, body: JsonObject) -> tuple[str, ...]:
        if "contents" not in body:
            for name in _WRAPPERS:
                if isinstance(body.get(name), dict):
                    return (name, "contents")
        return ("contents",)

    def answer(self, response: Response) -> JsonObject:
        read = read_chunks(response)
        if isinstance(read, JsonPayload):
            return unwrapped(read.value)
        if not isinstance(read, Chunks):
            return {}
        assembly = GenerateAssembly()
        for event in read.payload.events:
            assembly.add(event)
        return assembly.value()

    def listed(self, body: JsonObject) -> list[Json]:
        path = self.history(body)
        alone = obj(_at(body, path))
        return [alone] if alone else named(body, path)  # one content, not in a list

    def handed_back(self, answer: JsonObject, later: Sequence[JsonObject]) -> list[Json]:
        content = obj(obj(next(iter(items(answer.get("candidates"))), None)).get("content"))
        parts = _handed_back(items(content.get("parts")), later)
        return [{"role": "model", "parts": parts}] if parts else []

    def said(
        self, results: Sequence[ToolResult], user: str | None, answer: JsonObject, later: Sequence[JsonObject]
    ) -> list[Json]:
        theirs = [one for item in later for part in items(item.get("parts")) if (one := _response_in(part))]
        parts = _results(results, theirs)
        made: list[Json] = []
        if parts:
            role = next((i.get("role") for i in later if any(map(_response_in, items(i.get("parts"))))), "user")
            made.append({"role": role or "user", "parts": parts})
        if user is not None:
            made.append({"role": "user", "parts": [{"text": user}]})
        return made

    def retarget(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        if "model" in body:  # Code Assist
            return url, {**body, "model": model}
        return _MODEL.sub(lambda found: found[1] + model + found[2], url), body


def _at(body: JsonObject, path: Sequence[str]) -> Json:
    value: Json = body
    for name in path:
        value = obj(value).get(name)
    return value


def _handed_back(parts: Sequence[Json], later: Sequence[JsonObject]) -> list[Json]:
    """The answer's parts; thoughts only where the client keeps them. Empty ones say nothing, but may be signed."""
    theirs = next((item for item in later if item.get("role") == "model"), None)
    thinks = theirs is None or any(obj(part).get("thought") is True for part in items(theirs.get("parts")))
    return [p for p in parts if p and p != {"text": ""} and (thinks or obj(p).get("thought") is not True)]


def _response_in(part: Json) -> JsonObject:
    return obj(obj(part).get(spelled(obj(part), "functionResponse")))


def _results(results: Sequence[ToolResult], theirs: Sequence[JsonObject]) -> list[Json]:
    """What the functions gave, each spelled as the client spells it: found by its id, else by its place."""
    alike = by_id(theirs, "id")
    made: list[Json] = []
    for place, result in enumerate(results):
        like = alike.get(result.id or "") or (theirs[min(place, len(theirs) - 1)] if theirs else {})
        made.append(_result(result, like))
    return made


def _result(result: ToolResult, like: JsonObject) -> JsonObject:
    made: JsonObject = {"name": result.name or "", "response": _response(result, like.get("response"))}
    if result.id and (not like or "id" in like):
        made["id"] = result.id
    if result.parts:
        made["parts"] = list(result.parts)
    return {"functionResponse": made}


def _response(result: ToolResult, like: Json) -> Json:
    """An object, always: what the tool said if that is one, else under the name that the client puts it."""
    if isinstance(like, str):
        return result.text
    parsed = load(result.text) if result.text[:1] == "{" else UNREADABLE
    keys = list(obj(like))
    single = len(keys) == 1 and keys[0] in _SAYS and isinstance(obj(like)[keys[0]], str)
    if isinstance(parsed, dict) and not single:
        return parsed
    if result.is_error:
        return {"error": result.text}
    return {string(keys[0]) or "output" if single else "output": result.text}
