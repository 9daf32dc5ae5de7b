"""Findings that `wiretape stats` reports about a run. Each kind is one function; KINDS lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wiretape.analyze.cache.diagnosis import diagnose
from wiretape.analyze.cache.findings import cache_findings
from wiretape.analyze.cache.report import CacheReport
from wiretape.analyze.prefix_breaks import consecutive
from wiretape.analyze.repeats import RepeatedCalls
from wiretape.analyze.report import Finding
from wiretape.analyze.why import listed
from wiretape.model.call import Message, ModelCall, Reasoning, ToolCall
from wiretape.model.run import Run
from wiretape.runs.threads import failed


def unanswered_tool_calls(run: Run) -> Iterable[Finding]:
    """Tool calls without a result: one finding for each call that requested them."""
    steps = {step.call.number: step for step in run.steps}
    open_uses: dict[int, list[str]] = {}
    for use in run.tool_uses:
        if use.result is None and use.call.kind != "server" and not failed(steps[use.call_number].call):
            open_uses.setdefault(use.call_number, []).append(use.call.name)
    for number, tools in open_uses.items():
        thread = run.threads[steps[number].thread].calls
        said = f"{listed(tools)} from call {number} never got a result"
        later = next((call for call in thread if call > number), None)
        if later is not None:
            yield Finding(kind="unanswered_tool_call", call=number, text=f"{said}: call {later} goes on without it")
        else:
            text = f"{said}: the thread ends there (a tool that ends the run, or a run that was cut short)"
            yield Finding(kind="unanswered_tool_call", call=number, text=text, estimate=True)


def repeated_tool_calls(run: Run) -> Iterable[Finding]:
    """Repeated tool calls and runaway loops, as the lint rules WT007 and WT008 report them."""
    found = RepeatedCalls(run)
    for repeat in found.repeats:
        yield Finding(kind="repeated_tool_call", call=repeat.last.call_number, text=repeat.text)
    for runaway in found.runaways:
        yield Finding(kind="runaway_loop", call=runaway.calls[-1], text=runaway.text)


def dropped_reasoning(run: Run) -> Iterable[Finding]:
    """DeepSeek's thinking mode needs the `reasoning_content` of an answer with tool calls in the next request."""
    for before, call in consecutive(run):
        if not _must_return_reasoning(before):
            continue
        place = _index_of(before.tool_calls[0], call)
        if place is not None and not any(_carries_reasoning(message) for message in _answer_messages(call, place)):
            text = (
                f"reasoning_content was dropped from {call.request.path(place)}: the answer of call {before.number} "
                "had it, and a thinking-mode history with tool calls must carry it"
            )
            yield Finding(kind="dropped_reasoning", call=call.number, text=text)


def _must_return_reasoning(call: ModelCall) -> bool:
    deepseek = call.dialect == "deepseek" or "deepseek" in (call.model or "") or "deepseek" in call.url
    if call.format != "openai.chat" or not deepseek or not call.tool_calls or call.response is None:
        return False
    return any(_reasons(message) for message in call.response.messages)


def _reasons(message: Message) -> bool:
    return any(isinstance(block, Reasoning) and block.text for block in message.blocks)


def _carries_reasoning(message: Message) -> bool:
    return any(isinstance(block, Reasoning) for block in message.blocks)  # an empty one is enough


def _index_of(tool: ToolCall, call: ModelCall) -> int | None:
    """Return the index of the last message of a request that has a tool call."""
    for index in range(len(call.request.messages) - 1, -1, -1):
        for block in call.request.messages[index].blocks:
            if isinstance(block, ToolCall) and (block.id, block.name) == (tool.id, tool.name):
                return index
    return None


def _answer_messages(call: ModelCall, place: int) -> Iterable[Message]:
    """Yield a message and the messages of the same answer before it."""
    messages = call.request.messages
    yield messages[place]
    while place > 0 and messages[place - 1].role == "assistant":
        place -= 1
        yield messages[place]


def changed_models(run: Run) -> Iterable[Finding]:
    """A thread that changes its model: the two models do not share a cache."""
    for before, call in consecutive(run):
        old, new = before.request.model, call.request.model
        if old is not None and new is not None and old != new:
            text = f"the model asked for changed from {old} (call {before.number}) to {new}"
            yield Finding(kind="model_changed", call=call.number, text=text)


KINDS: tuple[Callable[[Run], Iterable[Finding]], ...] = (
    unanswered_tool_calls,
    repeated_tool_calls,
    dropped_reasoning,
    changed_models,
)


def findings(run: Run, cache: CacheReport | None = None) -> list[Finding]:
    """Return all findings, ordered by call. `cache`: the cache diagnosis, if the caller has it."""
    others = [finding for kind in KINDS for finding in kind(run)]
    reported = {finding.call for finding in others if finding.kind == "dropped_reasoning"}
    found = [*cache_findings(cache or diagnose(run), run, reported), *others]
    return sorted(found, key=lambda finding: finding.call or 0)
