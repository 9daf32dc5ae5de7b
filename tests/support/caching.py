"""Loops of calls with the usage that a provider's cache would report, for tests of the cache diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.support.calls import asks, assistant, make_call, result, system, user
from wiretape.model.call import Message, ModelCall, ToolSpec, Usage

PROMPT = "You are a patient assistant who books rooms and answers questions about them. " * 90  # about 1,700 tokens
OPENAI = "https://api.openai.com/v1/chat/completions"
ANTHROPIC = "https://api.anthropic.com/v1/messages"
HOSTS = {OPENAI: "openai", ANTHROPIC: "anthropic"}


def tool(name: str, description: str = "looks", **more: Any) -> ToolSpec:
    raw = {"name": name, "description": description, "input_schema": {"type": "object"}, **more}
    return ToolSpec(name, description, raw["input_schema"], "function", raw)


def turn(number: int) -> list[Message]:
    """What a call's answer and its tool's result add to the history."""
    return [
        assistant(f"let me look, {number}", asks("look", f'{{"n": {number}}}', f"c{number}")),
        result(f"room {number} is free until noon", f"c{number}"),
    ]


def history(turns: int, prompt: Message | None = None) -> list[Message]:
    """A system prompt, a question, and so many rounds of tool calls."""
    opening = [prompt or system(PROMPT), user("which room is free?")]
    return [*opening, *(message for n in range(1, turns + 1) for message in turn(n))]


def tokens(messages: Sequence[Message], offers: Sequence[ToolSpec] = ()) -> int:
    """Four characters are a token here."""
    said = sum(len(str(block)) for message in messages for block in message.blocks)
    return (said + sum(len(str(one.raw)) for one in offers)) // 4


def asked(
    number: int,
    messages: Sequence[Message],
    cached: int | None = 0,
    *,
    url: str = OPENAI,
    model: str | None = None,
    offers: Sequence[ToolSpec] = (),
    written: int | None = None,
    answer: Message | None = None,
    **more: Any,
) -> ModelCall:
    """One answered call; its answer is what `turn` says the model asked for, unless given."""
    given = {OPENAI: "gpt-4.1", ANTHROPIC: "claude-sonnet-4-5"}
    form = {OPENAI: "openai.chat", ANTHROPIC: "anthropic.messages"}
    call = make_call(
        number,
        messages,
        answer or turn(len(messages) // 2)[0],
        offers=offers,
        usage=Usage(tokens(messages, offers), cached, written, 20),
        model=model or given.get(url, "m"),
        format=form.get(url, "openai.chat"),
        **more,
    )
    return replace(call, url=url, dialect=HOSTS.get(url))


def marked(messages: Sequence[Message], *places: int) -> list[Message]:
    """The same messages with cache markers at some places (from the end, if negative) and nowhere else."""
    at = {place % len(messages) for place in places}
    return [replace(message, cache_marked=index in at) for index, message in enumerate(messages)]
