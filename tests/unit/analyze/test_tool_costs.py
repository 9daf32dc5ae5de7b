from __future__ import annotations

from dataclasses import replace

from tests.support.caching import tool
from tests.support.calls import asks, assistant, make_call, result, system, user

from wiretape.analyze.tool_costs import ToolCost, tool_costs
from wiretape.model.call import Message, ModelCall, ToolCall, Usage
from wiretape.runs.run import build_run

LOOK, BOOK, SING = tool("look"), tool("book", "books a room, for as long as is asked for"), tool("sing")
S, HI = system("be kind"), user("which room?")


def call(number: int, messages: list[Message], answer: Message, tokens: int | None, **more: object) -> ModelCall:
    usage = Usage(tokens, 0, None, 9) if tokens is not None else None
    return make_call(number, messages, answer, usage=usage, **{"offers": (LOOK, BOOK), **more})  # type: ignore[arg-type]


def costs(*calls: ModelCall) -> dict[str, ToolCost]:
    return {one.tool: one for one in tool_costs(build_run(calls)).tools}


def ask(*tools: str) -> Message:
    return assistant(*(asks(name, "{}", name) for name in tools))


def test_what_calls_and_results_added_is_the_difference_of_two_inputs() -> None:
    looked = [S, HI, ask("look"), result("room 7 is free", "look")]
    found = costs(call(1, [S, HI], ask("look"), 100), call(2, looked, assistant("room 7"), 130))
    look, book = found["look"], found["book"]
    assert (look.calls, look.results, look.added_tokens, look.added_measured, look.append_only) == (
        1,
        1,
        30,
        True,
        True,
    )
    assert (book.calls, book.added_tokens, book.append_only) == (0, None, None)


def test_two_tools_share_what_was_added_and_that_is_an_estimate() -> None:
    both = [S, HI, ask("look", "book"), result("x" * 90, "look"), result("x" * 290, "book")]
    found = costs(call(1, [S, HI], ask("look", "book"), 100), call(2, both, assistant("done"), 200))
    assert found["look"].added_tokens in range(20, 30)
    assert found["book"].added_tokens in range(70, 80)
    assert not found["look"].added_measured
    assert not found["book"].added_measured


def test_a_schema_is_measured_where_two_requests_differ_by_it_alone() -> None:
    found = costs(
        call(1, [S, HI], assistant("7"), 100, offers=(LOOK, BOOK)),
        call(2, [S, HI], assistant("7"), 83, offers=(LOOK,)),
    )
    book, look = found["book"], found["look"]
    assert (book.schema_tokens, book.schema_measured, book.requests, book.schema_total) == (17, True, 1, 17)
    assert look.schema_tokens is not None
    assert (look.schema_measured, look.requests) == (False, 2)


def test_a_schema_is_otherwise_an_estimate_by_its_length() -> None:
    found = costs(call(1, [S, HI], assistant("7"), 100))
    assert found["book"].schema_tokens is not None
    assert found["look"].schema_tokens is not None
    assert 100 > found["book"].schema_tokens > found["look"].schema_tokens > 0
    assert (found["book"].schema_measured, found["book"].schema_stable) == (False, True)


def test_without_counts_nothing_is_known() -> None:
    looked = [S, HI, ask("look"), result("room 7 is free", "look")]
    found = costs(call(1, [S, HI], ask("look"), None), call(2, looked, assistant("room 7"), None))["look"]
    assert (found.schema_tokens, found.schema_total, found.added_tokens) == (None, None, None)
    assert found.append_only is True


def test_a_context_that_was_rewritten_is_not_append_only() -> None:
    edited = [S, user("which room, please?"), ask("look"), result("room 7 is free", "look")]
    found = costs(call(1, [S, HI], ask("look"), 100), call(2, edited, assistant("room 7"), 130))["look"]
    assert (found.append_only, found.broken_in, found.added_tokens) == (False, [2], None)


def test_a_definition_that_changes_is_said_to() -> None:
    looked = [S, HI, ask("look"), result("room 7 is free", "look")]
    again = call(2, looked, assistant("7"), 130, offers=(replace(LOOK, raw={**LOOK.raw, "description": "!"}), BOOK))
    found = costs(call(1, [S, HI], ask("look"), 100), again)["look"]
    assert (found.schema_stable, found.append_only, found.broken_in) == (False, False, [2])


def test_what_the_provider_ran_itself_is_not_shared_out() -> None:
    ran = assistant(ToolCall("s1", "search", "{}", "server"), "room 7")
    found = costs(call(1, [S, HI], ran, 900), call(2, [S, HI, ran, user("more")], assistant("no"), 200))
    assert found["search"].calls == 1
    assert found["search"].added_tokens is None


def test_no_tools() -> None:
    assert tool_costs(build_run([make_call(1, [HI], "hi")])).tools == []


def test_the_dearest_goes_first() -> None:
    found = tool_costs(build_run([call(1, [S, HI], assistant("7"), 100, offers=(SING, BOOK))])).tools
    assert [one.tool for one in found] == ["book", "sing"]
