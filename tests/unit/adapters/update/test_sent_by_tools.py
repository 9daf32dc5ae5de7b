"""The requests that a kept tool sent itself, and those of other tasks at the same time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.replaying import chat, exchange, reply, user

from wiretape.adapters.update.session import sent_by_tools
from wiretape.model.http import Exchange
from wiretape.wire.mcp.tool_exchange import ToolAnswer, answer_body, call_body, tool_url

OPENAI = "https://api.openai.com/v1/chat/completions"
DONE = answer_body(ToolAnswer("done", "done"))


def asked(number: int, at: int, *messages: dict[str, Any]) -> Exchange:
    return replace(exchange(number, chat(*messages), reply("yes"), url=OPENAI), at=at, ended_at=at + 10)


def tool(number: int, at: int, ended_at: int, name: str = "research") -> Exchange:
    return replace(exchange(number, call_body(name, {}), DONE, url=tool_url(name)), at=at, ended_at=ended_at)


def also(first: str) -> list[dict[str, Any]]:
    """A conversation that goes on."""
    return [user(first), {"role": "assistant", "content": "yes"}, user("and then?")]


def test_what_began_while_a_tool_ran_is_its_own() -> None:
    tape = [
        asked(1, 0, user("plan")),
        tool(2, 100, 500),
        asked(3, 200, user("dig")),
        asked(4, 300, *also("dig")),
        asked(5, 600, user("write")),
    ]
    assert sent_by_tools(tape, {2}) == [3, 4]
    assert sent_by_tools(tape, {1, 5}) == []


def test_a_conversation_that_goes_on_while_no_tool_runs_is_another_task_s() -> None:
    tape = [
        tool(1, 100, 500),
        asked(2, 200, user("watch")),
        asked(3, 300, user("dig")),
        asked(4, 600, *also("watch")),
    ]
    assert sent_by_tools(tape, {1}) == [3]


def test_a_conversation_that_a_tool_takes_up_again_at_its_next_call_is_its_own() -> None:
    """Also where that next call is not kept."""
    tape = [
        tool(1, 100, 300),
        asked(2, 200, user("dig")),
        tool(3, 400, 600),
        asked(4, 500, *also("dig")),
    ]
    assert sent_by_tools(tape, {1}) == [2]
    assert sent_by_tools(tape, {1, 3}) == [2, 4]
