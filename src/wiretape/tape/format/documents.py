"""The documents of a tape, as pydantic models: these are the specification of the format.

`wiretape schema` prints their JSON Schema; docs/tape-format.md explains them. A tape is a header document, then
request, response, message and ended documents in the order of happening. Every document is strict: a member that
the format does not know is an error, so that a typing mistake in a hand edit is found.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from wiretape.model.http import Ended, Layout, Sender

VERSION = 1
HeaderValues: TypeAlias = dict[str, str | list[str]]
_LONGEST = 10**13  # milliseconds: 300 years; a later time is not a date any more
Millis: TypeAlias = Annotated[
    int, Field(ge=-_LONGEST, le=_LONGEST, description="whole milliseconds since the header's `started`")
]
Frame: TypeAlias = Annotated[int, Field(ge=0, le=10**9)]
_TIMES = r"^(\d{1,13}( \d{1,13})*)?$"
Number: TypeAlias = Annotated[int, Field(gt=0, le=10**9, description="the number of an exchange")]
Status: TypeAlias = Annotated[int, Field(ge=0, le=999)]

# A body is checked where it is read (`bodies.body_of`), by its one member: trying a union on it would cost twice that.
_BODY: dict[str, Any] = {"x-body": True}


class Document(BaseModel):
    """What all documents share."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Header(Document):
    """The first document of a tape."""

    wiretape: PositiveInt = Field(default=VERSION, description="version of the format")
    started: AwareDatetime = Field(
        ge=datetime(1900, 1, 1, tzinfo=UTC),
        lt=datetime(3000, 1, 1, tzinfo=UTC),
        description="wall-clock time that all times count from",
    )
    recorder: str = Field(description="what wrote the tape")
    note: str | None = None
    provenance: str | None = Field(
        default=None, description="where the traffic comes from, when it was not recorded live"
    )
    parent: str | None = Field(default=None, description="the tape that this one was forked or cut from")
    redacted: list[str] = Field(default_factory=list, description="what kinds of secrets were replaced")
    bypassed: list[str] | None = Field(default=None, description="hosts that were let through unrecorded")
    client: HeaderValues | None = Field(
        default=None, description="the request headers that told the versions of client and SDK, as seen on the wire"
    )


# -- bodies ------------------------------------------------------------------------------------------------------


class JsonShape(Document):
    """A JSON body. `layout` and `ascii` say how its encoder spelled it; `exact` false: no layout gives its bytes."""

    json_: Any = Field(alias="json")
    layout: Layout = "compact"
    ascii: bool = False
    exact: bool = True


class Operation(Document):
    """One operation of RFC 6902; only these three are used."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: Any = None


class LikeShape(Document):
    """A JSON body like an earlier one, changed."""

    like: str = Field(pattern=r"^\d+(\.\d+)?$", description="exchange, or exchange.message, whose body this changes")
    base: str = Field(description="the first 8 hex digits of the SHA-256 of that BODY as compact JSON")
    patch: list[Operation]
    keys: list[str] | None = Field(
        default=None, description="order of the members at the root, where patching gives another"
    )
    layout: Layout = "compact"
    ascii: bool = False
    exact: bool = True


class EventsShape(Document):
    """A streamed text body, frame by frame. A frame `~P,S:middle` has P characters before and S after from the last."""

    events: list[str]
    ms: str = Field(pattern=_TIMES, description="for each frame, milliseconds after `headers_at`")
    rewritten: list[Frame] | None = Field(default=None, description="frames (from 0) in which a secret was replaced")


class FramesShape(Document):
    """A streamed binary body, frame by frame, in base64."""

    frames: list[str]
    ms: str = Field(pattern=_TIMES)
    rewritten: list[Frame] | None = None


class TextShape(Document):
    text: str


class Base64Shape(Document):
    base64: str


BodyShape: TypeAlias = JsonShape | LikeShape | EventsShape | FramesShape | TextShape | Base64Shape

# -- exchanges ---------------------------------------------------------------------------------------------------


class RequestPart(Document):
    method: str
    url: str
    http: str | None = None
    headers: HeaderValues
    body: Any = Field(default=None, json_schema_extra=_BODY)


class RequestDocument(Document):
    """A request, written when it was complete. `at` is when it started."""

    exchange: Number
    at: Millis
    request: RequestPart


class ResponsePart(Document):
    status: Status
    headers: HeaderValues
    headers_at: Millis
    body: Any = Field(default=None, json_schema_extra=_BODY)
    trailers: HeaderValues | None = None


class ResponseDocument(Document):
    """A response. `ended` is absent for a WebSocket's 101 only: there, an ended document follows its messages."""

    exchange: Number
    at: Millis
    response: ResponsePart
    ended: Ended | None = None


class MessagePart(Document):
    sender: Sender = Field(alias="from")
    body: Any = Field(json_schema_extra=_BODY)


class MessageDocument(Document):
    """One whole WebSocket message, decompressed."""

    exchange: Number
    at: Millis
    message: MessagePart


class ClosePart(Document):
    code: int = Field(ge=0, le=65535)
    reason: str = ""
    sender: Sender | None = Field(default=None, alias="from")


class EndedDocument(Document):
    """The end of an exchange that got no response, or of a WebSocket."""

    exchange: Number
    at: Millis
    ended: Ended
    close: ClosePart | None = None


class IncompletePart(Document):
    reason: str
    exchanges: list[Annotated[int, Field(ge=0, le=10**9)]] = Field(
        default_factory=list, description="exchanges that lack something, if known (0: one that never started)"
    )


class IncompleteDocument(Document):
    """The recorder could not keep everything: what follows or stands before may lack exchanges."""

    at: Millis
    incomplete: IncompletePart


AnyDocument: TypeAlias = RequestDocument | ResponseDocument | MessageDocument | EndedDocument | IncompleteDocument

_BY_MEMBER: tuple[tuple[str, type[AnyDocument]], ...] = (
    ("request", RequestDocument),
    ("response", ResponseDocument),
    ("message", MessageDocument),
    ("incomplete", IncompleteDocument),
    ("ended", EndedDocument),
)


def parse_document(raw: Any) -> AnyDocument:
    """The document that this JSON value is. Raises ValueError saying which member is wrong."""
    if not isinstance(raw, dict):
        raise ValueError("a document must be a JSON object")
    for member, model in _BY_MEMBER:
        if member in raw:
            document: AnyDocument = validated(model, raw)
            return document
    raise ValueError("neither a request, a response, a message nor an ended document")


def validated(model: type[Any], raw: Any) -> Any:
    """`model.model_validate`, with an error that fits one line."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None


def first_problem(error: ValidationError) -> str:
    """The first thing that pydantic found wrong: where, and what."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg'].lower()}" if where else str(first["msg"]).lower()


def json_schema() -> dict[str, Any]:
    """The JSON Schema of any document of a tape."""
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(Header | AnyDocument)
    schema = adapter.json_schema(ref_template="#/$defs/{model}", by_alias=True)
    bodies: TypeAdapter[Any] = TypeAdapter(BodyShape)
    body = bodies.json_schema(ref_template="#/$defs/{model}", by_alias=True)
    definitions = {**schema.pop("$defs"), **body.pop("$defs")}
    for definition in definitions.values():
        for name, member in definition.get("properties", {}).items():
            if "x-body" in member:
                definition["properties"][name] = {"$ref": "#/$defs/BODY"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A document of a wiretape tape",
        "description": "The first document is a Header; the others follow in the order of happening.",
        **schema,
        "$defs": {**definitions, "BODY": body},
    }
