"""Rules about answers: truncated, failed in the middle, retried, or sent back without their reasoning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from wiretape.analyze.lint.base import LintFinding, LintRule, Subject
from wiretape.analyze.why import ENDS, failure
from wiretape.model.call import Message, ModelCall, Reasoning, ToolCall, Usage
from wiretape.model.http import Ended
from wiretape.model.jsonwalk import text_of
from wiretape.model.run import Step
from wiretape.runs.threads import failed

_TOTALS = ("total_tokens", "totalTokenCount", "total_token_count", "totalTokens")
_LIMITS = ("max_output_tokens", "max_completion_tokens", "max_tokens", "num_predict")


class DroppedReasoning(LintRule):
    id = "WT009"
    name = "dropped-reasoning"
    severity = "error"
    summary = "`reasoning_content` is missing from a thinking-mode history."
    explains = (
        "DeepSeek and Kimi in thinking mode need the `reasoning_content` of every assistant message with tool calls "
        "in all later requests; an empty one is enough. Without it the provider answers 400, or the model repeats its "
        "reasoning. The rule checks threads with a recorded answer that had reasoning and tool calls. It ignores "
        "answers without tool calls, and providers that do not need the reasoning."
    )
    mend = "append the answer's message unchanged, with its reasoning_content, instead of building a new one"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for thread in subject.run.threads:
            thought: dict[tuple[str | None, str, str], ModelCall] = {}
            reported: set[tuple[str | None, str, str]] = set()
            seen: dict[int, Message] = {}  # later requests resend the same objects
            for number in thread.calls:
                call = subject.steps[number].call
                for index, tool in _bare_tool_calls(call, seen) if thought else ():
                    key = (tool.id, tool.name, tool.arguments)
                    before = thought.get(key)
                    if before is not None and key not in reported:
                        reported.add(key)
                        yield self._finding(call, before, index)
                if _reasoning_is_needed(call):
                    thought |= {(tool.id, tool.name, tool.arguments): call for tool in call.tool_calls}

    def _finding(self, call: ModelCall, before: ModelCall, index: int) -> LintFinding:
        status = call.response.status if call.response is not None else None
        refused = f"; the provider answered {status}" if status is not None and status >= 400 else ""
        text = f"reasoning_content of call {before.number}'s answer was dropped from the history{refused}"
        values = {"answer": _reasoning(before), "history": "(absent)"}
        return self.finding(text, call, f"{call.request.path(index)}.reasoning_content", values=values)


def _reasoning_is_needed(call: ModelCall) -> bool:
    """True if later requests must carry the reasoning of an answer: it has tool calls, and the provider needs it."""
    model, host = call.model or "", call.url.split("/")[2:3]
    needed = call.dialect in ("deepseek", "moonshot") or "deepseek" in "".join(host)
    needed = needed or model.startswith(("deepseek-", "kimi-k2-thinking"))
    return call.format == "openai.chat" and needed and bool(call.tool_calls) and bool(_reasoning(call))


def _reasoning(call: ModelCall) -> str:
    messages = call.response.messages if call.response is not None else ()
    return "".join(b.text for message in messages for b in message.blocks if isinstance(b, Reasoning))


def _bare_tool_calls(call: ModelCall, seen: dict[int, Message]) -> Iterator[tuple[int, ToolCall]]:
    """Yield new tool calls in a request's history whose answer lacks its reasoning there."""
    messages = call.request.messages
    for index, message in enumerate(messages):
        if id(message) in seen:
            continue
        seen[id(message)] = message
        if message.role == "assistant" and not any(_has_reasoning(m) for m in _same_answer(messages, index)):
            for block in message.blocks:
                if isinstance(block, ToolCall):
                    yield index, block


def _same_answer(messages: tuple[Message, ...], index: int) -> Iterator[Message]:
    """Yield a message and the assistant messages directly before it."""
    while index >= 0 and messages[index].role == "assistant":
        yield messages[index]
        index -= 1


def _has_reasoning(message: Message) -> bool:
    return any(isinstance(block, Reasoning) for block in message.blocks)


class TruncatedAnswer(LintRule):
    id = "WT010"
    name = "truncated-answer"
    severity = "warning"
    summary = "An answer was cut at its length limit."
    explains = (
        "The provider stopped at the request's output limit, or at the end of the model's context window (finish "
        "`length`): the text, or the arguments of a tool call, are incomplete. For side calls, and for requests that "
        "allow only one token to test a connection, the finding is information."
    )
    mend = "raise the output limit, or let the model continue"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        aside = {step.call.number for step in subject.run.side_calls}
        for call in subject.calls:
            if call.response is None or call.response.finish != "length":
                continue
            name, limit = _limit(call)
            spent = call.usage.output if call.usage is not None else None
            tools = " in the middle of a tool call" if call.tool_calls else ""
            after = f" after {spent:,} tokens" if spent is not None else ""
            values = {name: str(limit)} if name is not None else {}
            probe = call.number in aside or limit == 1
            text = f"the answer was cut at its length limit{after}{tools}"
            yield self.finding(text, call, name, values=values, severity="info" if probe else None)


def _limit(call: ModelCall) -> tuple[str | None, int | None]:
    """Return the path and value of the request's output limit."""
    places: list[tuple[str, Mapping[str, object]]] = [("", call.request.settings)]
    for inner in ("generationConfig", "generation_config", "inferenceConfig", "options"):
        nested = call.request.settings.get(inner)
        if isinstance(nested, dict):
            places.append((f"{inner}.", nested))
    for prefix, settings in places:
        for name in (*_LIMITS, "maxOutputTokens", "maxTokens"):
            value = settings.get(name)
            if isinstance(value, int) and value > 0:
                return prefix + name, value
    return None, None


class Retries(LintRule):
    id = "WT011"
    name = "retries"
    severity = "info"
    summary = "A request was sent again after a failure."
    explains = (
        "The client sent the same request again after an error, a cut or a timeout. Each chain of attempts is one "
        "finding with its cost: the time from the first attempt to the start of the last one, and the tokens that the "
        "provider reports for failed attempts. It is a warning if an attempt came before the provider's `retry-after` "
        "had passed, or if every attempt failed."
    )
    mend = "nothing, if it is rare; else send fewer requests, and wait as long as retry-after states"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        chains: dict[int, list[Step]] = {}  # by the last attempt
        for step in subject.run.steps:
            if step.cause.kind == "retry" and step.cause.call is not None:
                before = chains.pop(step.cause.call, None) or [subject.steps[step.cause.call]]
                chains[step.call.number] = [*before, step]
        for _, chain in sorted(chains.items()):
            yield self._finding([step.call for step in chain])

    def _finding(self, calls: list[ModelCall]) -> LintFinding:
        first, last = calls[0], calls[-1]
        times = "once" if len(calls) == 2 else f"{len(calls) - 1} times"
        why = ", ".join(dict.fromkeys(failure(call) for call in calls[:-1]))
        text = f"call {first.number} was sent again {times} after {why}: {_lost(calls)}"
        if failed(last):
            return self.finding(f"{text}; the last attempt failed, too", last, severity="warning")
        early = next((after for before, after in pairwise(calls) if _waited(before, after) is not None), None)
        if early is None:
            return self.finding(text, last)
        text += f"; call {early.number} did not wait as long as the answer before it required"
        values = _waited(calls[calls.index(early) - 1], early)
        return self.finding(text, last, values=values, severity="warning")


def _lost(calls: list[ModelCall]) -> str:
    """Return the time and tokens of the failed attempts."""
    said = f"{(calls[-1].at - calls[0].at) / 1000:.1f} s"
    spent = [(u.input or 0) + (u.output or 0) for call in calls[:-1] if (u := call.usage) is not None]
    return f"{said} and {sum(spent):,} tokens" if sum(spent) else said


def _waited(before: ModelCall, after: ModelCall) -> dict[str, str] | None:
    """Return the required and the actual wait of an attempt that came too early; None for others."""
    error = before.response.error if before.response is not None else None
    if error is None or error.retry_after_ms is None or before.ended_at is None:
        return None
    waited = after.at - before.ended_at
    if waited >= error.retry_after_ms - 50:  # clocks are rounded
        return None
    return {"retry-after": f"{error.retry_after_ms} ms", "waited": f"{waited} ms"}


class MidStreamError(LintRule):
    id = "WT012"
    name = "mid-stream-error"
    severity = "error"
    summary = "An answer failed after it had begun."
    explains = (
        "The status was good, and then the stream had an error, or ended before its last event. Many clients take the "
        "received part for the whole answer. If the client itself closed the connection, the finding is information."
    )
    mend = "treat a stream without its last event as failed, and retry"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for call in subject.calls:
            response = call.response
            if response is None or response.status >= 400:
                continue
            if response.error is not None and response.error.phase != "before_stream":
                error = response.error
                kind = error.code or error.type or "an error"
                where = "in the middle of its stream" if error.phase == "mid_stream" else "with its last event"
                yield self.finding(f"the answer failed {where}: {kind}", call, values={"error": error.message})
            elif not response.complete and call.ended is not None and call.ended is not Ended.RECORDER_STOPPED:
                hung_up = call.ended is Ended.CLIENT_CLOSED
                text = f"the answer was cut before its last event: {ENDS.get(call.ended, 'its stream just ended')}"
                yield self.finding(text, call, severity="info" if hung_up else None)


class InconsistentUsage(LintRule):
    id = "WT016"
    name = "inconsistent-usage"
    severity = "warning"
    summary = "The token counts of an answer contradict each other."
    explains = (
        "Providers count cached, written, reasoning and audio tokens inside the input or output, or beside it. The "
        "provider's own total decides. Here it fits none of these readings, or several: a count is wrong in the answer "
        "itself. wiretape shows the counts as reported, and the price as an estimate."
    )
    mend = "compare the counts with the provider's bill; a gateway or a server between may compute them wrongly"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for step in subject.run.steps:
            usage = step.call.usage
            if usage is not None and not usage.consistent:
                text = f"the token counts contradict each other: {_counts(usage)}"
                yield self.finding(text, step.call, "answer.usage", values={"usage": text_of(usage.raw)})


def _counts(usage: Usage) -> str:
    named = {"input": usage.input, "cached": usage.cached, "cache written": usage.cache_write}
    named |= {"output": usage.output, "reasoning": usage.reasoning}
    total = next((usage.raw[name] for name in _TOTALS if name in usage.raw), None)
    counts = [f"{name} {count:,}" for name, count in named.items() if count is not None]
    return ", ".join([*counts, *([f"total {total:,}"] if isinstance(total, int) else [])])
