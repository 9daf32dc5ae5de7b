"""A fork: a run that shares a tape's first calls and then continues differently.

It uses the scheduler of a rerun. Up to the fork every answer comes from the tape; at the fork one answer, tool result
or request is changed; after it every answer comes from a live model. Sans-IO, like a rerun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from wiretape.compare.canonical import canonical
from wiretape.compare.json_paths import with_value
from wiretape.errors import UsageError
from wiretape.model.call import ModelCall, Text, ToolCall, ToolResult
from wiretape.model.http import Ended, Exchange, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import parsed
from wiretape.model.run import ToolUse
from wiretape.rerun.fork.answer_edit import edit_answer, with_body_text
from wiretape.rerun.fork.sockets_as_http import sockets_as_http
from wiretape.rerun.plan import RecordedCall, client_calls
from wiretape.rerun.scheduler import Rerun
from wiretape.rerun.values import CallOutcome, PlannedRequest, ToolHook
from wiretape.wire.base import Memo
from wiretape.wire.registry import default_registry


@dataclass(frozen=True, slots=True)
class EditedAnswer:
    """Another answer to call `call`: its edited `answer_values`, or its edited body.

    `result` is the result of a tool that the edited answer calls differently; without it, the tool hook decides.
    """

    call: int
    values: tuple[Json, ...] = ()
    result: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class EditedResult:
    """Another result, `text`, of the tool call with this index (from 0) in call `call`."""

    call: int
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class EditedRequest:
    """Another request body for call `call`, which `change` makes from the recorded one."""

    call: int
    change: Callable[[JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """No change: call `call` and later calls are sent live."""

    call: int


ForkChange: TypeAlias = EditedAnswer | EditedResult | EditedRequest | Unchanged


class Fork:
    """Runs a fork: `next()` returns a request, `from_tape` its answer before the fork; a model answers the rest."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        change: ForkChange,
        *,
        tools: ToolHook | None = None,
        mask: Sequence[str] = (),
    ) -> None:
        self._change, self._tools = change, tools
        self._http = sockets_as_http(exchanges, default_registry())
        self.rerun = Rerun(self._http.exchanges, live=True, mask=mask, tools=self._tool, change=self._body)
        self._calls = {call.number: call for call in self.rerun.calls}
        forked = self._forked_call(change.call)
        self._exchanges = {exchange.number: exchange for exchange in self._http.exchanges}
        self.edited: Exchange | None = None  # the exchange with the edited answer
        self._use: ToolUse | None = None
        self._changed_calls: list[ToolCall] = []  # tool calls of the edited answer that have no recorded result
        match change:
            case EditedAnswer(values=values, body=body):
                before = self._exchanges[forked.call.exchange]
                self.edited = edit_answer(before, values) if body is None else with_body_text(before, body)
                self._changed_calls = _changed_calls(forked, self.edited)
            case EditedResult(index=index):
                self._use = _tool_use(forked, index)
            case EditedRequest() | Unchanged():
                pass
        self.first_live = self._first_live()

    def _forked_call(self, number: int) -> RecordedCall:
        call = self._calls.get(number)
        if call is None:
            last = max(self._calls, default=0)
            raise UsageError(f"cannot fork at call {number}: the tape has calls 1 to {last}")
        if call.why_not:
            raise UsageError(f"cannot continue from call {number}: {call.why_not}")
        return call

    def _first_live(self) -> int:
        """Return the number of the first call that is sent live."""
        number = self._change.call
        match self._change:
            case EditedAnswer():
                return number + 1
            case EditedResult():
                assert self._use is not None
                return self._use.result_call if self._use.result_call is not None else number + 1
            case EditedRequest() | Unchanged():
                return number

    def next(self) -> PlannedRequest | None:
        """Return the next request, or None at the end."""
        return self.rerun.next()

    def from_tape(self, request: PlannedRequest) -> Response | None:
        """Return the recorded or edited answer, or None if the model has to answer."""
        number = request.number
        if number is None or number >= self.first_live:
            return None
        if self.edited is not None and number == self._change.call:
            return self.edited.response
        return self.rerun.recorded(request)

    def answered(self, response: Response, ended: Ended = Ended.COMPLETE) -> CallOutcome:
        """Take the response to the request that `next` returned."""
        return self.rerun.answered(response, ended)

    @property
    def entries(self) -> list[int | Exchange]:
        """The exchanges of the fork before its live part, in order: the numbers of kept ones, and changed ones.

        Changed ones are the edited exchange and the calls of a WebSocket of which only a part is kept.
        """
        origins = self._http.origins
        kept = [n for n in sorted(self._exchanges) if self._first_dropped is None or n < self._first_dropped]
        edited = self.edited.number if self.edited is not None else None
        parts: dict[int, list[int]] = {}
        for number, origin in origins.items():
            parts.setdefault(origin, []).append(number)
        entries: list[int | Exchange] = []
        for number in kept:
            own = parts[origins[number]]
            whole = edited not in own and all(part in kept for part in own)
            if not whole:
                entries.append(self.edited if number == edited and self.edited else self._exchanges[number])
            elif number == own[0]:
                entries.append(origins[number])
        return entries

    @property
    def splits_socket(self) -> bool:
        """Whether only a part of a WebSocket is kept."""
        return any(isinstance(one, Exchange) and one.number in self._http.from_sockets for one in self.entries)

    @property
    def _first_dropped(self) -> int | None:
        """The first exchange that is not kept: that of the first live call."""
        calls = self._calls.items()
        return min((call.call.exchange for number, call in calls if number >= self.first_live), default=None)

    @property
    def kept(self) -> int:
        """The number of exchanges that are the tape's."""
        return len(self.entries) - (self.edited is not None)

    # -- hooks of the rerun ---------------------------------------------------------------------------------------

    def _tool(self, call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        use = self._use
        if use is not None and isinstance(self._change, EditedResult) and _same_call(call, use.call):
            recorded = found or ToolResult(call.id, call.name, "", kind=call.kind)
            return replace(recorded, text=self._change.text, parts=(), is_error=False)
        if any(_same_call(call, other) and call.arguments == other.arguments for other in self._changed_calls):
            # The recorded result belongs to other arguments.
            text = self._change.result if isinstance(self._change, EditedAnswer) else None
            found = None if text is None else ToolResult(call.id, call.name, text, kind=call.kind)
        return self._tools(call, found) if self._tools is not None else found

    def _body(self, number: int | None, body: JsonObject) -> JsonObject:
        if isinstance(self._change, EditedRequest) and number == self._change.call:
            return self._change.change(body)
        return body


def _changed_calls(forked: RecordedCall, edited: Exchange) -> list[ToolCall]:
    """Return the edited answer's tool calls that differ from the recorded ones, without those that start subagents."""
    if forked.form is None:
        return []
    calls = client_calls(forked.form.decode(edited, Memo()))
    return [
        call
        for call, use in zip(calls, forked.uses, strict=False)
        if use.agent is None and canonical(_name_and_arguments(call)) != canonical(_name_and_arguments(use.call))
    ]


def _name_and_arguments(call: ToolCall) -> Json:
    return [call.name, parsed(call.arguments)]


def _tool_use(forked: RecordedCall, index: int) -> ToolUse:
    if not 0 <= index < len(forked.uses):
        has = ", ".join(f"{position}: {use.call.name}" for position, use in enumerate(forked.uses, 1)) or "no tools"
        raise UsageError(f"call {forked.number} has no tool call {index + 1}; it calls {has}")
    return forked.uses[index]


def _same_call(call: ToolCall, other: ToolCall) -> bool:
    """Compare two tool calls by id, or by name and arguments if both have no id."""
    if call.id is not None or other.id is not None:
        return call.id == other.id
    return call.name == other.name and call.arguments == other.arguments


def with_values(values: Mapping[str, Json]) -> Callable[[JsonObject], JsonObject]:
    """Return a change of a body that sets the value at each path."""

    def change(body: JsonObject) -> JsonObject:
        for path, value in values.items():
            body = with_value(body, path, value)
        return body

    return change


def with_prompt(call: ModelCall, text: str) -> Callable[[JsonObject], JsonObject]:
    """Return a change of a body that replaces the user's last text."""
    for place in range(len(call.request.messages) - 1, -1, -1):
        message = call.request.messages[place]
        if message.role != "user":
            continue
        for number, block in enumerate(message.blocks):
            if isinstance(block, Text):
                inside = message.block_paths[number] if number < len(message.block_paths) else ""
                return with_values({call.request.path(place) + inside: text})
    raise UsageError(f"cannot change the prompt of call {call.number}: it has no user text\n  edit the request instead")
