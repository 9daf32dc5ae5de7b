"""A model call: one inference, decoded into messages and blocks that are the same for all providers.

A call's *request* is the conversation so far; its *response* is what the model added. Numbers are normalized; a number
that the provider does not report is None, never 0.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

from wiretape.model.http import Ended
from wiretape.model.jsonvalue import Json, JsonObject

N = TypeVar("N", int, float)
Role: TypeAlias = str  # "system", "user", "assistant", "tool"; "developer" is decoded as "system"; others kept
CallKind: TypeAlias = Literal[
    "inference", "token_count", "embedding", "rerank", "moderation", "prewarm", "completion", "decision"
]
Finish: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "pause", "error"]
ToolKind: TypeAlias = Literal["function", "custom", "server"]  # server: run by the provider, needs no result


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model's reasoning: readable text, opaque provider state (signature, encrypted content), or both."""

    text: str
    opaque: str | None = None
    summary: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model requests. `arguments` is the raw string: JSON for functions, maybe broken or cut."""

    id: str | None
    name: str
    arguments: str
    kind: ToolKind = "function"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call. It is paired by `id`, else by `name` and order: some dialects have no ids."""

    id: str | None
    name: str | None
    text: str
    is_error: bool | None = None
    parts: tuple[Json, ...] = ()  # parts that are not text, raw
    kind: ToolKind = "function"


@dataclass(frozen=True, slots=True)
class ServedToolCall:
    """A tool call as a tool server received it. `text` is None without an answer.

    `waits`: the server requested more input, and did not get it.
    """

    exchange: int
    name: str
    arguments: Json
    at: int
    ended_at: int | None = None
    text: str | None = None
    is_error: bool | None = None
    parts: tuple[Json, ...] = ()  # parts that are not text, raw
    waits: bool = False
    id: str = ""  # its JSON-RPC id, as JSON
    server: str = ""  # its URL


@dataclass(frozen=True, slots=True)
class Media:
    """An image, audio, file or document. `raw` is the wire's own block."""

    kind: str
    raw: JsonObject


@dataclass(frozen=True, slots=True)
class Control:
    """A block that controls the conversation. `raw` is the wire's own block.

    For example: a compaction, a change of the tools, an approval, a reference to an earlier item, a change of model.
    """

    kind: str
    raw: JsonObject


@dataclass(frozen=True, slots=True)
class Unknown:
    """A block of a type that wiretape does not know, kept whole."""

    type: str
    raw: Json


Block: TypeAlias = Text | Reasoning | ToolCall | ToolResult | Media | Control | Unknown


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One item of a conversation. Compared by identity; `runs` and `matching` compare content.

    `block_paths[i]` is the path of block i inside the wire's item, such as `.content[0].text` or `.output`. Appended to
    `CallRequest.path(n)` it is the path in the request body.
    `extra` has the members of the wire's item that belong to the content and that no block has (`phase`, `name`).
    """

    role: Role
    blocks: tuple[Block, ...]
    block_paths: tuple[str, ...] = ()
    extra: tuple[tuple[str, Json], ...] = ()
    cache_marked: bool = False  # the item has an explicit cache marker


@dataclass(frozen=True, slots=True, eq=False)
class ToolSpec:
    name: str
    description: str | None
    schema: Json
    kind: ToolKind
    raw: JsonObject


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call. None: the provider did not report the number."""

    input: int | None = None  # total, cached and cache-written tokens included
    cached: int | None = None  # read from the provider's prompt cache
    cache_write: int | None = None
    output: int | None = None  # reasoning included
    reasoning: int | None = None
    raw: JsonObject = field(default_factory=dict, compare=False)
    consistent: bool = True  # False: the counts contradict each other, or the provider's own total


@dataclass(frozen=True, slots=True)
class CallError:
    """The provider's error. `phase`: before the stream, in the middle of it, or as its terminal event."""

    status: int
    type: str | None
    code: str | None
    message: str
    phase: Literal["before_stream", "mid_stream", "terminal_event"] = "before_stream"
    retryable: bool = False
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CallRequest:
    """A decoded request.

    `segments` are the members of the body that have the messages: with ((0, "system"), (1, "messages")), message 0 is
    `system` (element 0 if `system` is a list) and message 1 is `messages[0]`. See `path`.
    `settings` has every other top-level member (temperature, stream, thinking, …), as on the wire.
    """

    model: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    settings: JsonObject = field(default_factory=dict)
    stream: bool = False
    segments: tuple[tuple[int, str], ...] = ()
    scalars: frozenset[str] = frozenset()  # segments that are one message, not a list
    previous_response_id: str | None = None
    held: int = 0  # index of the first message after the history that the provider stores; 0: none is stored

    def path(self, index: int) -> str:
        """The path of message `index` in the request body, such as `input[3]`."""
        where = bisect_right(self.segments, index, key=lambda segment: segment[0]) - 1
        if where < 0:
            return f"[{index}]"
        start, name = self.segments[where]
        return name if name in self.scalars else f"{name}[{index - start}]"


@dataclass(frozen=True, slots=True, eq=False)
class CallResponse:
    """A decoded response. `complete` is False when the stream was cut before its terminal event."""

    status: int
    model: str | None = None
    id: str | None = None
    messages: tuple[Message, ...] = ()
    finish: Finish | None = None
    raw_finish: str | None = None
    usage: Usage | None = None
    error: CallError | None = None
    complete: bool = True
    streamed: bool = False
    first_token_at: int | None = None  # the first event of a stream with content
    diagnostics: Json = None  # the provider's own report on its prompt cache, raw
    service_tier: str | None = None  # the tier that served the call, as the provider names it
    cost: float | None = None  # in USD, if a gateway reports it in a header


@dataclass(frozen=True, slots=True, eq=False)
class ModelCall:
    """One inference. `number` counts model calls from 1 in the order in which they started (0: not numbered yet)."""

    number: int
    exchange: int
    format: str  # "openai.chat", …
    request: CallRequest
    response: CallResponse | None
    at: int
    ended_at: int | None
    ended: Ended | None
    kind: CallKind = "inference"
    dialect: str | None = None  # a hint, such as "deepseek"; it never decides how bytes are decoded
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()  # request headers that link calls (session and agent ids)
    part: int | None = None  # its position among the calls of a WebSocket, from 1
    frames: tuple[int, ...] = ()  # its messages in the WebSocket, from 1

    @property
    def model(self) -> str | None:
        """The model that the response names, else the requested one."""
        if self.response is not None and self.response.model:
            return self.response.model
        return self.request.model

    @property
    def usage(self) -> Usage | None:
        return self.response.usage if self.response is not None else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls that the response requests, including those that the provider runs."""
        if self.response is None:
            return ()
        return tuple(b for m in self.response.messages for b in m.blocks if isinstance(b, ToolCall))


def sum_known(values: Iterable[N | None]) -> N | None:
    """Sum the numbers that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None
