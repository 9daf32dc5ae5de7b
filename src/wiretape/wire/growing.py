"""How a history grows: what a format's next request is, given the last one, its answer, and what the tools said.

A format may have a `grower`: an object of this protocol. One without it is read, replayed and explained as any other;
only its next request cannot be built, and `wiretape rerun` says so. What clients do differently within one format
(hand back what the model thought or not, name a tool in its result) is taken from a request of the same client, `like`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.base import WireFormat
from wiretape.wire.lenient import items, obj
from wiretape.wire.payload import Event, EventPayload, JsonPayload, read_payload


class Grower(Protocol):
    """How one format's conversations go on."""

    def history(self, body: JsonObject) -> tuple[str, ...]:
        """Where in a request body the list stands that grows, as member names from the outside in."""
        ...

    def answer(self, response: Response) -> JsonObject:
        """What the model answered, as an unstreamed call would have given it; {} where nothing can be read."""
        ...

    def grow(
        self,
        body: JsonObject,
        answer: JsonObject,
        results: Sequence[ToolResult] = (),
        user: str | None = None,
        like: JsonObject | None = None,
    ) -> JsonObject:
        """The next request body: the last one, its answer, the tools' results, and what the user says then.

        Nothing that is given is changed; what did not change is the same object in the body that is made.
        """
        ...

    def retarget(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        """The same request for another model, wherever the format names it."""
        ...


def grower_of(form: WireFormat | None) -> Grower | None:
    """How this format grows; None where it does not say."""
    return cast("Grower | None", getattr(form, "grower", None))


class Assembles(Protocol):
    """What a format gathers a stream with."""

    def add(self, event: Event) -> None: ...

    def value(self) -> Any: ...


def assembled(response: Response, assembly: Assembles) -> JsonObject:
    """The answer as one JSON object, whether it was streamed or not."""
    payload = read_payload(response)
    if isinstance(payload, JsonPayload):
        return obj(payload.value)
    if isinstance(payload, EventPayload):
        for event in payload.events:
            assembly.add(event)
        return obj(assembly.value())
    return {}


class BodyModel:
    """Formats that name the model in the body."""

    def retarget(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        return url, {**body, "model": model}


class InMessages(BodyModel):
    """Formats whose history is the body's `messages`."""

    def history(self, body: JsonObject) -> tuple[str, ...]:
        return ("messages",)


class ItemForEach(InMessages):
    """Formats that hand back one item for the answer's `message`, and one of the role `tool` for each result."""

    def assistant(self, said: JsonObject, like: JsonObject | None) -> JsonObject:
        """The answer as an item of the history. `like`: how the client spelled it."""
        raise NotImplementedError

    def result(self, result: ToolResult, like: JsonObject | None) -> JsonObject:
        """What a tool said, as an item. `like`: how the client spelled one."""
        raise NotImplementedError

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
        made, said = list(history), obj(answer.get("message"))
        if said:
            made.append(self.assistant(said, with_role(later, "assistant")))
        spelled = [item for item in later if item.get("role") == "tool"]
        for n, result in enumerate(results):
            made.append(self.result(result, spelled[min(n, len(spelled) - 1)] if spelled else None))
        if user is not None:
            made.append({"role": "user", "content": user})
        return {**body, "messages": made}


def beyond(history: Sequence[Json], like: Sequence[Json]) -> list[JsonObject]:
    """The items of a later request of the same client that come after this history, as far as they are objects."""
    return [item for item in like[len(history) :] if isinstance(item, dict)]


def with_role(found: Sequence[JsonObject], *roles: str) -> JsonObject | None:
    """The first of these items that has one of these roles."""
    return next((item for item in found if item.get("role") in roles), None)


def named(body: JsonObject, path: Sequence[str]) -> list[Json]:
    """The list at this path of a body."""
    value: Json = body
    for name in path:
        value = obj(value).get(name)
    return items(value)


def replaced(body: JsonObject, path: Sequence[str], value: Json) -> JsonObject:
    """The body with another value at this path; everything else is shared."""
    head, *rest = path
    return {**body, head: replaced(obj(body.get(head)), rest, value) if rest else value}


def text_and_parts(result: ToolResult, text_part: Json) -> list[Json]:
    """A result's content as a list: its text, if it has any, and its other parts."""
    return [*([text_part] if result.text or not result.parts else []), *result.parts]
