"""Request builders: from a request, its answer and the tool results to the next request.

Clients of one format differ: some return the model's reasoning, some name the tool in its result. A builder copies
these habits from `style_sample`, a later request of the same client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import StreamAssembler, assemble
from wiretape.wire.lenient import items, obj
from wiretape.wire.payload import EventPayload, JsonPayload, Payload, read_payload


@dataclass(frozen=True, slots=True)
class TurnDelta:
    """The additions since a request: its answer, the tool results, and the user's next text."""

    answer: JsonObject
    results: Sequence[ToolResult] = ()
    user: str | None = None
    style_sample: JsonObject | None = None


class RequestBuilder(Protocol):
    """Continues the conversations of one wire format."""

    def history_path(self, body: JsonObject) -> tuple[str, ...]:
        """Return the path of the list that holds the history, as member names; () if the body has no history."""
        ...

    def read_answer(self, response: Response) -> JsonObject:
        """Return the answer in the shape of an unstreamed one; {} if it cannot be read."""
        ...

    def next_body(self, body: JsonObject, delta: TurnDelta) -> JsonObject:
        """Return the next request's body: `body` with `delta` appended.

        The arguments are not modified. Unchanged parts of the new body are the same objects as in `body`.
        """
        ...

    def with_model(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        """Return the URL and the body of the same request for another model."""
        ...

    def stored_history(self, body: JsonObject) -> JsonObject:
        """Return the members that refer to a history stored by the provider; {} if the body has all of it."""
        ...


def joined_answer(payload: Payload, assembler: StreamAssembler) -> JsonObject:
    """Return the answer as one JSON object; a stream is joined by the assembler."""
    if isinstance(payload, JsonPayload):
        return obj(payload.value)
    return obj(assemble(assembler, payload.events).value()) if isinstance(payload, EventPayload) else {}


def answer_of(response: Response, assembler: StreamAssembler) -> JsonObject:
    """Return a response's answer as one JSON object."""
    return joined_answer(read_payload(response), assembler)


class ModelInBody:
    """Formats that name the model in the body, and whose requests carry the whole history."""

    def with_model(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        return url, {**body, "model": model}

    def stored_history(self, body: JsonObject) -> JsonObject:
        return {}


class ListHistory(ModelInBody):
    """Formats whose history is one list, to which the client appends the answer, then the results and its own text.

    `later` are the items that follow this history in the style sample.
    """

    def history_path(self, body: JsonObject) -> tuple[str, ...]:
        return ("messages",)

    def history(self, body: JsonObject) -> list[Json]:
        """Return the items of the history so far."""
        return items(value_at(body, self.history_path(body)))

    def answer_items(self, answer: JsonObject, later: Sequence[JsonObject]) -> list[Json]:
        """Return the answer as items of the history."""
        raise NotImplementedError

    def client_items(self, delta: TurnDelta, later: Sequence[JsonObject]) -> list[Json]:
        """Return the tool results and the user's text as items of the history."""
        raise NotImplementedError

    def next_body(self, body: JsonObject, delta: TurnDelta) -> JsonObject:
        history = self.history(body)
        later = items_after(history, self.history(obj(delta.style_sample)))
        added = [*self.answer_items(delta.answer, later), *self.client_items(delta, later)]
        return with_value_at(body, self.history_path(body), [*history, *added])


def by_id(found: Iterable[JsonObject], *names: str) -> dict[str, JsonObject]:
    """Map the ids that objects have in these members to the first object with that id."""
    mapped: dict[str, JsonObject] = {}
    for one in found:
        for name in names:
            if isinstance(id := one.get(name), str) and id:
                mapped.setdefault(id, one)
    return mapped


def items_after(history: Sequence[Json], sample: Sequence[Json]) -> list[JsonObject]:
    """Return the objects that follow this history in a longer history of the same client."""
    return [item for item in sample[len(history) :] if isinstance(item, dict)]


def with_role(found: Sequence[JsonObject], role: str) -> JsonObject | None:
    """Return the first item with this role."""
    return next((item for item in found if item.get("role") == role), None)


def value_at(body: JsonObject, path: Sequence[str]) -> Json:
    """Return the value at a path of member names, or None."""
    value: Json = body
    for name in path:
        value = obj(value).get(name)
    return value


def with_value_at(body: JsonObject, path: Sequence[str], value: Json) -> JsonObject:
    """Return the body with another value at this path; the rest is shared."""
    head, *rest = path
    return {**body, head: with_value_at(obj(body.get(head)), rest, value) if rest else value}


def text_and_parts(result: ToolResult, text_part: Json) -> list[Json]:
    """Return a result's content as a list: its text, unless only other parts exist, then the other parts."""
    return [*([text_part] if result.text or not result.parts else []), *result.parts]
