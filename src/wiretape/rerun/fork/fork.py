"""A fork: another run that shares a tape's first calls, and goes its own way from one of them.

The scheduler is a rerun's. Up to the place of the fork every answer is the tape's; there one thing is another (an
answer, a tool's result, a request), and from there every answer is asked for live. Sans-IO, as a rerun is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from wiretape.compare.canonical import canonical
from wiretape.compare.json_paths import with_value
from wiretape.compare.tool_results import parsed_arguments
from wiretape.errors import UsageError
from wiretape.model.call import ModelCall, Text, ToolCall, ToolResult
from wiretape.model.http import Ended, Exchange, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.run import ToolUse
from wiretape.rerun.fork.answer_edit import edited
from wiretape.rerun.fork.body_edit import rewritten
from wiretape.rerun.fork.sockets_as_http import unheld
from wiretape.rerun.plan import Take, client_calls
from wiretape.rerun.scheduler import Rerun
from wiretape.rerun.values import Row, Send, ToolHook
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry, default_registry


@dataclass(frozen=True, slots=True)
class Answers:
    """Call `call` is answered otherwise: `said` is `answer_edit.said` of its answer, changed; or `body` is its body.

    `result`: what the tool gives that is asked for otherwise now; else the hook for tools is asked.
    """

    call: int
    said: tuple[Json, ...] = ()
    result: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """A tool that call `call` asks for, its `index`th from 0, gives `text`."""

    call: int
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Asks:
    """The request of call `call` has another body. `change` makes it from the recorded one."""

    call: int
    change: Callable[[JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class Onwards:
    """Nothing is changed; call `call` and what follows is asked for live."""

    call: int


Change: TypeAlias = Answers | Results | Asks | Onwards


class Fork:
    """`next()` gives what is to be answered; `from_tape` answers what the tape still does; the rest is for a model."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        change: Change,
        *,
        tools: ToolHook | None = None,
        mask: Sequence[str] = (),
        registry: Registry | None = None,
    ) -> None:
        self._change, self._tools = change, tools
        over_http = unheld(exchanges, registry or default_registry())
        self.rerun = Rerun(
            over_http.exchanges, live=True, mask=mask, registry=registry, tools=self._tool, change=self._body
        )
        self._takes = {take.number: take for take in self.rerun.takes}
        take = self._take(change.call)
        self._exchanges = {exchange.number: exchange for exchange in over_http.exchanges}
        self._before, self._opened = over_http.before, over_http.opened
        self.edited: Exchange | None = None  # the exchange that has another answer
        self._use: ToolUse | None = None
        self._asked_anew: list[ToolCall] = []  # tool calls of the changed answer that no recorded result belongs to
        match change:
            case Answers(said=said, body=body):
                before = self._exchanges[take.call.exchange]
                self.edited = edited(before, said, registry) if body is None else rewritten(before, body, registry)
                self._asked_anew = _asked_anew(take, self.edited)
            case Results(index=index):
                self._use = _use(take, index)
            case Asks() | Onwards():
                pass
        self.first_live = self._first_live()

    def _take(self, number: int) -> Take:
        take = self._takes.get(number)
        if take is None:
            last = max(self._takes, default=0)
            raise UsageError(f"there is no call {number} to fork at: the tape has calls 1 to {last}")
        if take.why_not:
            raise UsageError(f"call {number} cannot be gone on from: {take.why_not}")
        return take

    def _first_live(self) -> int:
        """The first call that is asked for live."""
        number = self._change.call
        match self._change:
            case Answers():
                return number + 1
            case Results():
                assert self._use is not None
                return self._use.result_call if self._use.result_call is not None else number + 1
            case Asks() | Onwards():
                return number

    # -- what a driver calls -----------------------------------------------------------------------------------------

    def next(self) -> Send | None:
        return self.rerun.next()

    def from_tape(self, send: Send) -> Response | None:
        """The tape's answer, or the changed one; None: ask the model."""
        number = send.number
        if number is None or number >= self.first_live:
            return None
        if self.edited is not None and number == self._change.call:
            return self.edited.response
        return self.rerun.recorded(send)

    def answered(self, response: Response, ended: Ended = Ended.COMPLETE) -> Row:
        return self.rerun.answered(response, ended)

    @property
    def entries(self) -> list[int | Exchange]:
        """What the fork has of its tape, in order: exchanges that stay as they are, by their numbers there, and others.

        Others are the one with another answer, and the calls of a WebSocket that does not stay whole: as exchanges over
        HTTP, as which the fork goes on.
        """
        stays = [n for n in sorted(self._exchanges) if self._gone is None or n < self._gone]
        edited = self.edited.number if self.edited is not None else None
        parts: dict[int, list[int]] = {}
        for number, before in self._before.items():
            parts.setdefault(before, []).append(number)
        made: list[int | Exchange] = []
        for number in stays:
            own = parts[self._before[number]]
            whole = edited not in own and all(part in stays for part in own)
            if not whole:
                made.append(self.edited if number == edited and self.edited else self._exchanges[number])
            elif number == own[0]:
                made.append(self._before[number])
        return made

    @property
    def opens_socket(self) -> bool:
        """Whether a WebSocket does not stay whole."""
        return any(isinstance(one, Exchange) and one.number in self._opened for one in self.entries)

    @property
    def _gone(self) -> int | None:
        """The first exchange that does not stay: that of the first call that is asked live."""
        return min((self._takes[n].call.exchange for n in self._takes if n >= self.first_live), default=None)

    @property
    def kept(self) -> int:
        """How many exchanges are the tape's."""
        return len(self.entries) - (self.edited is not None)

    # -- hooks of the rerun ------------------------------------------------------------------------------------------

    def _tool(self, call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        use = self._use
        if use is not None and isinstance(self._change, Results) and _same(call, use.call):
            told = found or ToolResult(call.id, call.name, "", kind=call.kind)
            return replace(told, text=self._change.text, parts=(), is_error=False)
        if any(_same(call, other) and call.arguments == other.arguments for other in self._asked_anew):
            found = self._told(call)
        return self._tools(call, found) if self._tools is not None else found

    def _told(self, call: ToolCall) -> ToolResult | None:
        """What a tool gives that was asked otherwise: what was given by hand. The recorded result is another's."""
        text = self._change.result if isinstance(self._change, Answers) else None
        return None if text is None else ToolResult(call.id, call.name, text, kind=call.kind)

    def _body(self, number: int | None, body: JsonObject) -> JsonObject:
        if isinstance(self._change, Asks) and number == self._change.call:
            return self._change.change(body)
        return body


def _asked_anew(take: Take, exchange: Exchange) -> list[ToolCall]:
    """Tools that do their work otherwise than on the tape; a subagent's task is its own affair."""
    if take.form is None:
        return []
    asked = client_calls(take.form.decode(exchange, Memo()))
    return [
        call
        for call, use in zip(asked, take.uses, strict=False)
        if use.agent is None and canonical(_read(call)) != canonical(_read(use.call))
    ]


def _read(call: ToolCall) -> Json:
    return [call.name, parsed_arguments(call.arguments)]


def _use(take: Take, index: int) -> ToolUse:
    if not 0 <= index < len(take.uses):
        has = ", ".join(f"{place}: {use.call.name}" for place, use in enumerate(take.uses, 1)) or "none"
        raise UsageError(f"call {take.number} asks for no tool {index + 1}; it asks for {has}")
    return take.uses[index]


def _same(call: ToolCall, other: ToolCall) -> bool:
    """Whether it is this very tool call: by its id, or where there is none by what it asks."""
    if call.id is not None or other.id is not None:
        return call.id == other.id
    return call.name == other.name and call.arguments == other.arguments


def with_values(values: Mapping[str, Json]) -> Callable[[JsonObject], JsonObject]:
    """A change of a body: at each path another value."""

    def change(body: JsonObject) -> JsonObject:
        for path, value in values.items():
            body = with_value(body, path, value)
        return body

    return change


def with_prompt(call: ModelCall, text: str) -> Callable[[JsonObject], JsonObject]:
    """A change of a body: the last words of the user become `text`."""
    for place in range(len(call.request.messages) - 1, -1, -1):
        message = call.request.messages[place]
        if message.role != "user":
            continue
        for number, block in enumerate(message.blocks):
            if isinstance(block, Text):
                inside = message.block_paths[number] if number < len(message.block_paths) else ""
                return with_values({call.request.path(place) + inside: text})
    raise UsageError(f"the request of call {call.number} has no words of a user to change; edit the request itself")
