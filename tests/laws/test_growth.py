"""A built next request decodes to the history, the answer, and the new results and user messages, in every format."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.growing import FORMATS, Call, Format

from wiretape.model.call import Block, Reasoning, Text, ToolCall, ToolResult
from wiretape.model.http import Ended, Exchange
from wiretape.rerun.next_request.base import TurnDelta
from wiretape.wire.base import Memo
from wiretape.wire.lenient import load

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30).filter(
    lambda text: text == "" or (text.strip() == text and not text.startswith("<think>"))
)
SAID = WORDS.filter(bool)
VALUES = st.one_of(st.integers(-9, 9), WORDS, st.booleans())
ARGUMENTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)
NAMES: st.SearchStrategy[list[str]] = st.lists(st.sampled_from(["weather", "search", "book_seat"]), max_size=3)


Turn: TypeAlias = tuple[str, list[Call], list[str], str | None]  # texts, tool calls, results, answers


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    calls: list[Call] = [(f"call_{n}", name, draw(ARGUMENTS)) for n, name in enumerate(draw(NAMES))]
    text = draw(WORDS if calls else SAID)
    goes_on = bool(calls) and draw(st.booleans())
    return text, calls, [draw(SAID) for _ in calls], None if goes_on else draw(SAID)


def spoken(blocks: list[Block]) -> list[object]:
    """Blocks without ids that a format may lack; texts of one speaker may come joined or apart."""
    made: list[object] = []
    for block in blocks:
        match block:
            case ToolCall(name=name, arguments=arguments):
                made.append(("call", name, load(arguments)))
            case ToolResult(text=text):
                made.append(("result", text))
            case Text(text=text) | Reasoning(text=text):
                made.append(("says", text))
            case _:
                made.append(block)
    return made


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.label)
@given(st.lists(turns(), min_size=1, max_size=3))
def test_growing_then_decoding_gives_history_answer_and_results(one: Format, conversation: list[Turn]) -> None:
    memo = Memo()
    body = one.body
    before = list(one.form.decode_request(one.request(body), memo).messages)
    for text, calls, said, user in conversation:
        response = one.response(text, calls)
        exchange = Exchange(1, 0, one.request(body), response, Ended.COMPLETE, 1)
        decoded = one.form.decode(exchange, memo)
        assert decoded.response is not None
        results = [ToolResult(i, name, r) for (i, name, _), r in zip(calls, said, strict=True)]
        body = one.builder.next_body(body, TurnDelta(one.builder.read_answer(response), results, user))
        after = list(one.form.decode_request(one.request(body), memo).messages)
        blocks = [block for message in after[len(before) :] for block in message.blocks]
        expected: list[object] = spoken([b for m in decoded.response.messages for b in m.blocks])
        expected += [("result", result.text) for result in results]
        expected += [("says", user)] if user is not None else []
        assert spoken(blocks) == expected
        assert [spoken(list(m.blocks)) for m in after[: len(before)]] == [spoken(list(m.blocks)) for m in before]
        before = after
