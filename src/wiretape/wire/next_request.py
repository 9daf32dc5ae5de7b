"""How a history grows: what a format's next request is, given the last one, its answer, and what the tools said.

A format may have a `grower`: an object of this protocol. One without it is read, replayed and explained as any other;
only its next request cannot be built, and `wiretape rerun` says so. What clients do differently within one format
(hand back what the model thought or not, name a tool in its result) is taken from a request of the same client, `like`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.base import WireFormat
from wiretape.wire.lenient import is_empty, items, obj
from wiretape.wire.payload import Event, EventPayload, JsonPayload, read_payload


@dataclass(frozen=True, slots=True)
class Since:
    """What came after a request: its answer, the tools' results, what the user says then.

    `like`: a later request of the same client, whose habits are followed.
    """

    answer: JsonObject
    results: Sequence[ToolResult] = ()
    user: str | None = None
    like: JsonObject | None = None


class Grower(Protocol):
    """How one format's conversations go on."""

    def history(self, body: JsonObject) -> tuple[str, ...]:
        """Where in a request body the list stands that grows, as member names from the outside in; () where none is."""
        ...

    def answer(self, response: Response) -> JsonObject:
        """What the model answered, as an unstreamed call would have given it; {} where nothing can be read."""
        ...

    def grow(self, body: JsonObject, since: Since) -> JsonObject:
        """The next request body: the last one, and what came since.

        Nothing that is given is changed; what did not change is the same object in the body that is made.
        """
        ...

    def retarget(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        """The same request for another model, wherever the format names it."""
        ...

    def held(self, body: JsonObject) -> JsonObject:
        """The members of a body that name a history which the provider holds; {} where the body has all of it."""
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
    """Formats that name the model in the body, and whose requests carry all of their history."""

    def retarget(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        return url, {**body, "model": model}

    def held(self, body: JsonObject) -> JsonObject:
        return {}


class InList(BodyModel):
    """The frame of formats whose history is one list: it goes on with the answer, then with what the client says.

    `later` are the items that a later request of the same client has after this history: they show how it spells.
    """

    def history(self, body: JsonObject) -> tuple[str, ...]:
        return ("messages",)

    def listed(self, body: JsonObject) -> list[Json]:
        """The history so far."""
        return named(body, self.history(body))

    def handed_back(self, answer: JsonObject, later: Sequence[JsonObject]) -> list[Json]:
        """The answer as items of the history."""
        raise NotImplementedError

    def said(
        self, results: Sequence[ToolResult], user: str | None, answer: JsonObject, later: Sequence[JsonObject]
    ) -> list[Json]:
        """What the tools and the user say, as items. `answer`: what asked for the tools."""
        raise NotImplementedError

    def grow(self, body: JsonObject, since: Since) -> JsonObject:
        history = self.listed(body)
        later = beyond(history, self.listed(obj(since.like)))
        said = self.said(since.results, since.user, since.answer, later)
        made = [*history, *self.handed_back(since.answer, later), *said]
        return replaced(body, self.history(body), made)


class ItemForEach(InList):
    """Formats that hand back one item for the answer's message, and one for each result."""

    results_by: tuple[str, ...] = ("tool",)  # roles of the items that have results

    def message(self, answer: JsonObject) -> JsonObject:
        """What the model said, in the format's own shape."""
        return obj(answer.get("message"))

    def assistant(self, said: JsonObject, like: JsonObject | None) -> JsonObject:
        """The answer as an item of the history. `like`: how the client spelled it."""
        raise NotImplementedError

    def result(self, result: ToolResult, said: JsonObject, like: JsonObject | None) -> JsonObject:
        """What a tool said, as an item. `said`: the answer that asked for it; `like`: how the client spelled one."""
        raise NotImplementedError

    def names(self, said: JsonObject) -> dict[str, str]:
        """The names of the tools that an answer calls, by the ids of the calls, if results may repeat them."""
        return {}

    def handed_back(self, answer: JsonObject, later: Sequence[JsonObject]) -> list[Json]:
        said = self.message(answer)
        return [self.assistant(said, with_role(later, "assistant"))] if said else []

    def said(
        self, results: Sequence[ToolResult], user: str | None, answer: JsonObject, later: Sequence[JsonObject]
    ) -> list[Json]:
        message = self.message(answer)
        spelled = [item for item in later if item.get("role") in self.results_by]
        names, alike = self.names(message), by_id(spelled, "tool_call_id")
        made: list[Json] = []
        for place, result in enumerate(results):
            like = alike.get(result.id or "") or (spelled[min(place, len(spelled) - 1)] if spelled else None)
            made.append(self.result(replace(result, name=result.name or names.get(result.id or "")), message, like))
        return made if user is None else [*made, {"role": "user", "content": user}]


class ResultsLead(InList):
    """Formats that hand back the parts of an answer, and whose next user message begins with the results."""

    def parts(self, answer: JsonObject, like: JsonObject | None) -> list[Json]:
        """The answer's parts that are handed back. `like`: the message in which the client handed them back."""
        raise NotImplementedError

    def result(self, result: ToolResult) -> JsonObject:
        """What a tool said, as a part."""
        raise NotImplementedError

    def words(self, user: str) -> JsonObject:
        """What the user says, as a part."""
        return {"text": user}

    def handed_back(self, answer: JsonObject, later: Sequence[JsonObject]) -> list[Json]:
        parts = self.parts(answer, with_role(later, "assistant"))
        return [{"role": "assistant", "content": parts}] if parts else []

    def said(
        self, results: Sequence[ToolResult], user: str | None, answer: JsonObject, later: Sequence[JsonObject]
    ) -> list[Json]:
        parts: list[Json] = [self.result(result) for result in results]
        if user is not None:
            parts.append(self.words(user))
        return [{"role": "user", "content": parts}] if parts else []


class MayBeHeld(BodyModel):
    """The frame of formats whose `input` is all of the history, or only what is new where the provider holds the rest.

    `previous` is the member that names the answer after which a held history goes on.
    """

    previous = "previous_response_id"

    def history(self, body: JsonObject) -> tuple[str, ...]:
        return ("input",)

    def listed(self, given: Json) -> list[Json]:
        """What stands in `input`, as a list of items."""
        raise NotImplementedError

    def words(self, user: str) -> Json:
        """What the user says, as an item."""
        raise NotImplementedError

    def handed_back(self, answer: JsonObject, theirs: Sequence[JsonObject] | None) -> list[Json]:
        """The answer's items. `theirs`: what the client's request has after this history; None where none is known."""
        raise NotImplementedError

    def results(self, results: Sequence[ToolResult], answer: JsonObject, like: Sequence[JsonObject]) -> list[Json]:
        """What the tools said, as items. `answer`: what asked for them; `like`: what the client says at that place."""
        raise NotImplementedError

    def grow(self, body: JsonObject, since: Since) -> JsonObject:
        like, answer = since.like, since.answer
        held = self.goes_on_from(like if like is not None else body, answer)
        before = [] if held is not None else self.listed(body.get("input"))
        theirs = beyond(before, self.listed(like.get("input"))) if like is not None else None
        said = self.results(since.results, answer, theirs or ())
        if since.user is not None:
            said.append(self.words(since.user))
        rest = {name: value for name, value in body.items() if name != self.previous}
        if held is not None:
            return {**rest, **held, "input": said}
        return {**rest, "input": [*before, *self.handed_back(answer, theirs), *said]}

    def goes_on_from(self, habit: JsonObject, answer: JsonObject) -> JsonObject | None:
        """The members that name a history which the provider holds; None where the request carries it all.

        `habit`: a request of the same client.
        """
        if is_empty(habit.get(self.previous)) or not answer.get("id"):
            return None
        return {self.previous: answer["id"]}

    def held(self, body: JsonObject) -> JsonObject:
        return {self.previous: body[self.previous]} if body.get(self.previous) is not None else {}


def by_id(found: Iterable[JsonObject], *names: str) -> dict[str, JsonObject]:
    """Objects by the ids that they have under these names; the first object of each id."""
    made: dict[str, JsonObject] = {}
    for one in found:
        for name in names:
            if isinstance(id := one.get(name), str) and id:
                made.setdefault(id, one)
    return made


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
