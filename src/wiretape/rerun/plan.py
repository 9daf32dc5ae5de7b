"""What a rerun goes by: every recorded call with its body, its answer, and how its format grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wiretape.model.call import ModelCall, ToolCall, ToolResult
from wiretape.model.http import Body, Exchange, JsonBody, Request, Response, StreamBody, body_bytes
from wiretape.model.jsonvalue import JsonObject
from wiretape.model.run import Run, Step, ToolUse
from wiretape.wire.base import WireFormat
from wiretape.wire.lenient import body_json
from wiretape.wire.next_request import Grower, grower_of
from wiretape.wire.registry import Registry


@dataclass(frozen=True, slots=True, eq=False)
class Grounds:
    """What a request can be built on."""

    form: WireFormat
    grower: Grower
    body: JsonObject


@dataclass(frozen=True, slots=True, eq=False)
class Take:
    """A recorded call as a rerun needs it. `grounds`: None where it cannot be built on; `why_not` says why."""

    step: Step
    request: Request
    response: Response | None
    form: WireFormat | None
    grounds: Grounds | None
    uses: tuple[ToolUse, ...] = ()  # the tools it asked for, without those that the provider runs
    why_not: str = ""

    @property
    def call(self) -> ModelCall:
        return self.step.call

    @property
    def number(self) -> int:
        return self.step.call.number

    @property
    def failed(self) -> bool:
        """Whether no answer came, or an error."""
        answer = self.call.response
        return answer is None or answer.error is not None or answer.status >= 400

    @property
    def cut(self) -> bool:
        """Whether its answer lacks its end."""
        return self.call.response is not None and not self.call.response.complete


def plan(run: Run, exchanges: Sequence[Exchange], registry: Registry) -> list[Take]:
    """Every call of a run, by number."""
    by_number = {exchange.number: exchange for exchange in exchanges}
    uses: dict[int, list[ToolUse]] = {}
    for use in run.tool_uses:
        if use.call.kind != "server":
            uses.setdefault(use.call_number, []).append(use)
    return [
        _take(step, by_number[step.call.exchange], registry, tuple(uses.get(step.call.number, ())))
        for step in run.steps
        if step.call.exchange in by_number
    ]


def _take(step: Step, exchange: Exchange, registry: Registry, uses: tuple[ToolUse, ...]) -> Take:
    call = step.call
    form = registry.named(call.format)
    grower = grower_of(form)
    why = "" if grower is not None else f"{call.format} does not say how its history grows"
    request, response = _of_socket(exchange, call) if exchange.messages else (exchange.request, exchange.response)
    value = body_json(request.body)
    if not why and grower is not None and _is_polled(call, exchange, grower):
        why = "its answer was asked for again and again until it was there"
    if not why and grower is not None and isinstance(value, dict) and not grower.history(value):
        why = f"a plain prompt in {call.format} does not say how it goes on"
    grounds = None
    if not why and form is not None and grower is not None and isinstance(value, dict):
        grounds = Grounds(form, grower, value)
    elif not why:
        why = "its body is no JSON object"
    return Take(step, request, response, form, grounds, uses, why)


def _of_socket(exchange: Exchange, call: ModelCall) -> tuple[Request, Response]:
    """A WebSocket's call as the HTTP exchange that says the same: one body, and the events as a stream."""
    messages = [exchange.messages[frame - 1] for frame in call.frames if frame <= len(exchange.messages)]
    asked = next((m.body for m in messages if m.sender == "client"), None)
    events = [b"data: " + body_bytes(m.body) + b"\n\n" for m in messages if m.sender == "server"]
    request = replace(exchange.request, method="POST", url=_as_http(exchange.request.url), body=_without_type(asked))
    return request, Response(200, body=StreamBody(events, [0] * len(events)))


def _without_type(body: Body | None) -> Body | None:
    value = body_json(body)
    if not isinstance(value, dict):
        return body
    return JsonBody({key: item for key, item in value.items() if key != "type"})


def _as_http(url: str) -> str:
    return "http" + url[2:] if url.startswith(("ws:", "wss:")) else url


def client_calls(call: ModelCall | None) -> tuple[ToolCall, ...]:
    """The tools that an answer asks the client for."""
    return tuple(tool for tool in call.tool_calls if tool.kind != "server") if call is not None else ()


def results_in(take: Take) -> Iterator[ToolResult]:
    """The results that a request adds, in its order."""
    for message in take.call.request.messages[take.step.new_from :]:
        yield from (block for block in message.blocks if isinstance(block, ToolResult) and block.kind != "server")


def _is_polled(call: ModelCall, exchange: Exchange, grower: Grower) -> bool:
    """Whether the answer is not this exchange's: the call ran in the background."""
    answer, body = call.response, exchange.response.body if exchange.response is not None else None
    if answer is None or not answer.messages or not isinstance(body, JsonBody) or exchange.response is None:
        return False
    return answer.error is None and grower.answer(exchange.response).get("status") in ("queued", "in_progress")
