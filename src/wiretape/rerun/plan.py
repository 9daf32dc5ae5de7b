"""The recorded calls of a rerun, each with its body, its answer and its request builder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wiretape.model.call import ModelCall, ToolCall, ToolResult
from wiretape.model.http import Exchange, JsonBody, Request, Response
from wiretape.model.jsonvalue import JsonObject
from wiretape.model.run import Run, Step, ToolUse
from wiretape.rerun.next_request.base import RequestBuilder
from wiretape.rerun.next_request.builders import builder_for
from wiretape.rerun.socket_calls import http_url, socket_body, socket_response
from wiretape.wire.base import WireFormat
from wiretape.wire.lenient import body_json
from wiretape.wire.registry import Registry


@dataclass(frozen=True, slots=True, eq=False)
class RequestBasis:
    """A recorded request from which the next one can be built."""

    form: WireFormat
    builder: RequestBuilder
    body: JsonObject


@dataclass(frozen=True, slots=True, eq=False)
class RecordedCall:
    """A recorded call. `basis` is None if no request can be built from it; `why_not` states the reason."""

    step: Step
    request: Request
    response: Response | None
    form: WireFormat | None
    basis: RequestBasis | None
    uses: tuple[ToolUse, ...] = ()  # its tool calls, without those that the provider runs
    why_not: str = ""

    @property
    def call(self) -> ModelCall:
        return self.step.call

    @property
    def number(self) -> int:
        return self.step.call.number

    @property
    def failed(self) -> bool:
        """Whether its answer is missing or an error."""
        answer = self.call.response
        return answer is None or answer.error is not None or answer.status >= 400

    @property
    def truncated(self) -> bool:
        """Whether the end of its answer is missing."""
        return self.call.response is not None and not self.call.response.complete


def plan(run: Run, exchanges: Sequence[Exchange], registry: Registry) -> list[RecordedCall]:
    """Return every call of a run, by number."""
    by_number = {exchange.number: exchange for exchange in exchanges}
    uses: dict[int, list[ToolUse]] = {}
    for use in run.tool_uses:
        if use.call.kind != "server":
            uses.setdefault(use.call_number, []).append(use)
    return [
        _recorded_call(step, by_number[step.call.exchange], registry, tuple(uses.get(step.call.number, ())))
        for step in run.steps
        if step.call.exchange in by_number
    ]


def _recorded_call(step: Step, exchange: Exchange, registry: Registry, uses: tuple[ToolUse, ...]) -> RecordedCall:
    call = step.call
    form = registry.named(call.format)
    request, response = exchange.request, exchange.response
    if exchange.messages:
        body = JsonBody(socket_body(exchange, call))
        request = replace(request, method="POST", url=http_url(request.url), body=body)
        response = socket_response(exchange, call)
    basis = _basis(call, exchange, form, request)
    if isinstance(basis, str):
        return RecordedCall(step, request, response, form, None, uses, basis)
    return RecordedCall(step, request, response, form, basis, uses)


def _basis(call: ModelCall, exchange: Exchange, form: WireFormat | None, request: Request) -> RequestBasis | str:
    """Return the basis for the next request, or the reason why it cannot be built."""
    builder, body = builder_for(form), body_json(request.body)
    if form is None or builder is None:
        return f"wiretape cannot build the next request in {call.format}"
    if _is_polled(call, exchange, builder):
        return "its answer came from a background response that the client polled"
    if not isinstance(body, dict):
        return "its body is not a JSON object"
    if not builder.history_path(body):
        return f"a plain prompt in {call.format} has no history to continue"
    return RequestBasis(form, builder, body)


def _is_polled(call: ModelCall, exchange: Exchange, builder: RequestBuilder) -> bool:
    """Return whether the call ran in the background, so that its answer is in another exchange."""
    answer, response = call.response, exchange.response
    if answer is None or not answer.messages or response is None or not isinstance(response.body, JsonBody):
        return False
    return answer.error is None and builder.read_answer(response).get("status") in ("queued", "in_progress")


def client_calls(call: ModelCall | None) -> tuple[ToolCall, ...]:
    """Return the tool calls that the client has to run."""
    return tuple(tool for tool in call.tool_calls if tool.kind != "server") if call is not None else ()


def new_results(recorded: RecordedCall) -> Iterator[ToolResult]:
    """Yield the tool results that a request adds to its history."""
    for message in recorded.call.request.messages[recorded.step.new_from :]:
        yield from (block for block in message.blocks if isinstance(block, ToolResult) and block.kind != "server")
