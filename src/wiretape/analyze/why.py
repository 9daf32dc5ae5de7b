"""Explain in one sentence why a model call was made."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import assert_never

from wiretape.model.call import ModelCall
from wiretape.model.http import Ended
from wiretape.model.run import Agent, Cause, LinkBasis, LinkKind, Run, Step
from wiretape.runs.threads import failed


def why(step: Step, run: Run) -> str:
    """Return why a call was made."""
    cause = step.cause
    match cause.kind:
        case "turn_start":
            return _turn_start(step, run)
        case "tool_results":
            return _tool_results(cause) + _heard(step, run, ", and hears ")
        case "subagent":
            return _subagent(step, run)
        case "report":
            return _heard(step, run, "hears ", result=True) or "hears another agent" + _detail(cause)
        case "handoff":
            return _handoff(step, run)
        case "retry":
            return _retry(cause, run)
        case "continuation":
            return _continuation(cause, run)
        case "side_call":
            return _side_call(cause)
        case "unknown":
            return "unknown" + _detail(cause)
        case _:
            assert_never(cause.kind)


def _turn_start(step: Step, run: Run) -> str:
    said = "first call of the turn: the user's message"
    thread = run.threads[step.thread]
    if thread.from_call is not None and thread.calls[0] == step.call.number:
        said += f", going another way from call {thread.from_call}"
    return said + _detail(step.cause)


def _tool_results(cause: Cause) -> str:
    if cause.call is None:
        return "answers tool calls that are not on the tape" + _detail(cause)
    if not cause.tools:
        return f"brings back tool results after call {cause.call}" + _detail(cause)
    return f"answers {listed(cause.tools)} from call {cause.call}" + _detail(cause)


def _subagent(step: Step, run: Run) -> str:
    cause, agent = step.cause, run.agents[step.agent]
    start = "an unknown call" if cause.call is None else f"call {cause.call}"
    if cause.detail is not None:  # the agent has made calls before
        with_tool = f" with {listed(cause.tools)}" if cause.tools else ""
        return f"next message to {_called(agent)}, sent by {start}{with_tool}{_inferred(cause.basis)}"
    named_after_it = agent.name.partition(" #")[0] in cause.tools
    by = f" ({listed(cause.tools)})" if cause.tools and not named_after_it else ""
    return f"first call of {_called(agent)}, started by {start}{by}{_inferred(cause.basis)}"


def _handoff(step: Step, run: Run) -> str:
    giver, agent = run.agents[step.agent].parent, run.agents[step.agent].name
    tools = f" ({listed(step.cause.tools)})" if step.cause.tools else ""
    return f"{agent} goes on where {_agent(giver, run)} handed over in call {step.cause.call}{tools}"


_SAID: dict[LinkKind, str] = {
    "report": "the report",
    "closing": "the closing message",
    "message": "the message",
    "result": "the answer",
}


def _heard(step: Step, run: Run, opening: str, result: bool = False) -> str:
    """The messages of other agents in a request, besides the tool results."""
    kinds = _SAID if result else _SAID.keys() - {"result"}
    heard = [link for link in step.links if link.kind in kinds and link.to_agent == step.agent]
    told = [f"{_SAID[link.kind]} of {_agent(link.from_agent, run)} (call {link.from_call})" for link in heard]
    bases = {link.basis for link in heard} - {"id", "header"}
    return opening + _and(told) + _inferred(next(iter(bases), None)) if told else ""


def _agent(number: int | None, run: Run) -> str:
    if number is None:
        return "an unknown agent"
    return _called(run.agents[number])


def _called(agent: Agent) -> str:
    """An agent's name, with the word `subagent` if the name lacks it."""
    plain = agent.origin in ("root", "handoff") or agent.name.startswith("subagent")
    return agent.name if plain else f"subagent {agent.name}"


def _retry(cause: Cause, run: Run) -> str:
    step = _step(run, cause.call)
    return f"retry of call {cause.call} after {failure(step.call if step is not None else None)}" + _detail(cause)


def _continuation(cause: Cause, run: Run) -> str:
    if cause.call is None:
        return "goes on" + _detail(cause)
    step = _step(run, cause.call)
    finish = step.call.response.finish if step is not None and step.call.response is not None else None
    reasons = {"length": ", which was cut at its length limit", "pause": ", which the provider paused"}
    return f"continues after call {cause.call}{reasons.get(finish or '', '')}" + _detail(cause)


def _side_call(cause: Cause) -> str:
    beside = f", beside call {cause.call}" if cause.call is not None else ""
    return f"side call{beside}" + _detail(cause)


def _step(run: Run, number: int | None) -> Step | None:
    if number is None:
        return None
    place = bisect_left(run.steps, number, key=lambda step: step.call.number)
    found = run.steps[place] if place < len(run.steps) else None
    return found if found is not None and found.call.number == number else None


def failure(call: ModelCall | None) -> str:
    """The failure of a call in one or two words."""
    if call is None or not failed(call):
        return "an answer"
    response = call.response
    if response is not None and response.status >= 400:
        return str(response.status)
    if response is not None and response.error is not None:
        return response.error.code or response.error.type or "an error"
    return ENDS.get(call.ended, "an answer that was cut")


ENDS: dict[Ended | None, str] = {
    Ended.CLIENT_CLOSED: "the client hung up",
    Ended.UPSTREAM_CLOSED: "the upstream broke off",
    Ended.UPSTREAM_UNREACHABLE: "the upstream could not be reached",
    Ended.TIMEOUT: "a timeout",
}


def _inferred(basis: LinkBasis | None) -> str:
    return {"data_flow": " (inferred from what flowed between them)", "order": " (inferred from their order)"}.get(
        basis or "", ""
    )


def listed(tools: Sequence[str]) -> str:
    """Tool names in the order of their calls; a repeated one is counted."""
    counts = Counter(tools)
    return _and([name if count == 1 else f"{name} ×{count}" for name, count in counts.items()])


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" and {words[-1]}"


def _detail(cause: Cause) -> str:
    return f" ({cause.detail})" if cause.detail else ""
