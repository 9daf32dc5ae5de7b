from __future__ import annotations

import random
from typing import Any

import orjson
import pytest
from tests.support.taping import spell

from wiretape.model.http import JsonBody, body_bytes
from wiretape.tape.format.incremental_parser import BodyParser
from wiretape.tape.format.json_layout import NotCarried
from wiretape.tape.format.json_offsets import Parsed

TOOLS = [{"name": f"tool_{n}", "description": f"does {n} " * 10} for n in range(5)]
STEPS = [{"role": "user", "content": f"step {n} " * 20} for n in range(40)]


def chat(steps: int, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": STEPS[:steps], "tools": TOOLS, **more}


def raw_of(parsed: Parsed) -> bytes:
    return body_bytes(JsonBody(parsed.value, parsed.layout, parsed.ascii))


@pytest.mark.parametrize("layout", ["compact", "spaced"])
@pytest.mark.parametrize("ascii", [False, True])
def test_a_history_that_grows_is_the_same_objects_and_what_is_new(layout: Any, ascii: bool) -> None:
    parser = BodyParser()
    before: Parsed | None = None
    for steps in range(1, 20):
        body = chat(steps, note="天气")
        raw = spell(body, layout, ascii)
        parsed = parser.parse(raw)
        assert raw_of(parsed) == raw
        if before is not None:
            assert (parsed.base, parsed.key, parsed.common) == (before, "messages", steps - 1)
            old, new = before.value["messages"], parsed.value["messages"]
            assert all(a is b for a, b in zip(old, new, strict=False))
            assert parsed.value["tools"] is before.value["tools"]
        before = parsed


def test_only_one_step_of_bases_is_kept_alive() -> None:
    parser = BodyParser()
    first = parser.parse(spell(chat(3)))
    second = parser.parse(spell(chat(4)))
    assert second.base is first
    third = parser.parse(spell(chat(5)))
    assert third.base is second
    assert second.base is None


def test_what_follows_the_history_may_change() -> None:
    parser = BodyParser()
    first = parser.parse(spell(chat(8, stream=True)))
    second = parser.parse(spell(chat(9, stream=False, seed=7)))
    assert second.base is first
    assert second.common == 8
    assert second.value["tools"] is first.value["tools"]
    assert second.value["messages"][3] is first.value["messages"][3]
    assert raw_of(second) == spell(chat(9, stream=False, seed=7))


def test_a_clock_before_the_history_costs_the_prefix_and_not_the_sharing() -> None:
    parser = BodyParser()
    for minute in range(3):
        body = {"system": f"It is 15:0{minute}.", "messages": STEPS[: 10 + minute], "tools": TOOLS}
        parsed = parser.parse(spell(body))
        assert raw_of(parsed) == spell(body)
        if minute:
            assert parsed.base is not None
            assert parsed.common == 9 + minute
            assert parsed.value["tools"] is parsed.base.value["tools"]


def test_a_compacted_history_shares_what_it_kept() -> None:
    parser = BodyParser()
    parser.parse(spell({"messages": STEPS[:20]}))
    parsed = parser.parse(spell({"messages": [STEPS[0], {"role": "user", "content": "a summary"}, *STEPS[15:21]]}))
    assert parsed.base is not None
    old = {id(message) for message in parsed.base.value["messages"]}
    assert sum(id(message) in old for message in parsed.value["messages"]) == 6


def test_the_base_is_the_longest_common_history_not_the_latest() -> None:
    parser = BodyParser()
    long = parser.parse(spell({"messages": STEPS[:12]}))
    parser.parse(spell({"messages": [*STEPS[:3], {"role": "user", "content": "a side call"}]}))
    parsed = parser.parse(spell({"messages": STEPS[:13]}))
    assert parsed.base is long
    assert parsed.common == 12


def test_the_same_body_again_is_the_same_value() -> None:
    parser = BodyParser()
    first = parser.parse(spell(chat(5)))
    again = parser.parse(spell(chat(5)))
    assert again.base is first
    assert again.common == 5
    assert again.value["messages"] is first.value["messages"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b'{"pad":"%b","n":[1,12]}', b'{"pad":"%b","n":[1,123]}'),  # a number that goes on
        (b'{"pad":"%b","n":[1,12]}', b'{"pad":"%b","n":[1,12.5]}'),
        (b'{"pad":"%b","n":[1,1]}', b'{"pad":"%b","n":[1,true]}'),  # 1 is not true
        (b'{"pad":"%b","n":[1]}', b'{"pad":"%b","n":[1.0]}'),
        (b'{"pad":"%b","n":[]}', b'{"pad":"%b","n":[{}]}'),
        (b'{"pad":"%b","n":[{"a":1,"b":2}]}', b'{"pad":"%b","n":[{"b":2,"a":1}]}'),  # the order of members counts
        (b'{"pad":"%b","n":["a"],"m":["b"]}', b'{"pad":"%b","n":["a"],"m":["b","c"]}'),
        (b'{"pad":"%b","n":["a"],"m":["b"]}', b'{"pad":"%b","n":["a"],"x":{"m":["b"]}}'),
    ],
)
def test_values_that_look_alike_stay_apart(first: bytes, second: bytes) -> None:
    parser = BodyParser()
    for text in (first, second, first, second):
        raw = text % (b"p" * 200)
        parsed = parser.parse(raw)
        assert orjson.dumps(parsed.value) == raw
        assert parsed.exact


@pytest.mark.parametrize(
    "added",
    [b'{"a":1,"a":2}', b"-0", b"NaN", b"18446744073709551616", b'"\\ud800"', b"", b'"x"],"y":["z"', b'"x" "y"'],
)
def test_what_values_cannot_carry_is_found_behind_a_known_beginning_too(added: bytes) -> None:
    parser = BodyParser()
    head, tail = b'{"messages":["' + b"m" * 300 + b'"', b'],"t":1}'
    parser.parse(head + tail)
    raw = head + b"," + added + tail
    if added == b'"x"],"y":["z"':
        assert orjson.dumps(parser.parse(raw).value) == raw
        return
    with pytest.raises(NotCarried):
        parser.parse(raw)
    assert orjson.dumps(parser.parse(head + tail).value) == head + tail  # and nothing was spoilt


def test_an_encoder_that_escapes_as_no_layout_does_still_shares() -> None:
    """Go escapes < and >: the bytes do not come back, the values do, and unchanged ones are the same objects."""
    parser = BodyParser()

    def go(steps: int) -> bytes:
        messages = [{"role": "user", "content": f"<b>{n}</b> " * 20} for n in range(steps)]
        return spell({"messages": messages}).replace(b"<", b"\\u003c").replace(b">", b"\\u003e")

    first, second = parser.parse(go(6)), parser.parse(go(7))
    assert not first.exact
    assert second.value == orjson.loads(go(7))
    assert second.base is first
    assert second.common == 6


def test_random_walks_of_histories() -> None:
    source = random.Random(11)
    parser = BodyParser()
    messages = list(STEPS[:5])
    for _ in range(300):
        move = source.random()
        if move < 0.6:
            messages = [*messages, source.choice(STEPS)]
        elif move < 0.75:
            messages = messages[: source.randint(0, len(messages))]
        elif move < 0.9 and messages:
            place = source.randrange(len(messages))
            messages = [*messages[:place], {**messages[place], "mark": True}, *messages[place + 1 :]]
        else:
            messages = messages[source.randint(0, len(messages)) :]
        body = {"model": "m", "messages": messages, "tools": TOOLS[: source.randint(3, 5)]}
        raw = spell(body)
        parsed = parser.parse(raw)
        assert orjson.dumps(parsed.value) == raw


def test_a_list_a_number_and_rubbish() -> None:
    parser = BodyParser()
    assert parser.parse(b"[1,2]").value == [1, 2]
    assert parser.parse(b"3").value == 3
    with pytest.raises(NotCarried):
        parser.parse(b"{")


@pytest.mark.parametrize("layout", ["compact", "spaced"])
def test_a_body_of_which_one_element_changed_costs_that_one_and_what_is_new(layout: Any) -> None:
    """A system prompt that tells the time, in a history that grows."""
    rng = random.Random(7)
    parser = BodyParser()
    before: Parsed | None = None
    for steps in range(4, 30):
        clock = {"role": "system", "content": "be brief " * rng.randint(1, 30) + f"it is {rng.randint(0, 10**9)} 点"}
        body = {"tools": TOOLS, "messages": [clock, *STEPS[:steps]], "model": "m"}
        raw = spell(body, layout)
        parsed = parser.parse(raw)
        assert parsed.value == body
        assert raw_of(parsed) == raw
        assert parsed.exact
        if before is not None:
            old, new = before.value["messages"], parsed.value["messages"]
            assert all(a is b for a, b in zip(old[1:], new[1:], strict=False))
        before = parsed


@pytest.mark.parametrize(
    "changed", [b'{"n":1e2}', b'{"n":-0}', b'{"a":1,"a":2}', b'"x","y"', b'{"n":18446744073709551616}']
)
def test_a_changed_element_that_values_cannot_carry_is_found(changed: bytes) -> None:
    def spelled(element: bytes) -> bytes:
        return b'{"messages":[%b,%b]}' % (element, b",".join(orjson.dumps(step) for step in STEPS[:9]))

    parser, fresh = BodyParser(), BodyParser()
    parser.parse(spelled(b'{"n":1}'))
    try:
        expected: Any = fresh.parse(spelled(changed))
    except NotCarried:
        with pytest.raises(NotCarried):
            parser.parse(spelled(changed))
        return
    found = parser.parse(spelled(changed))
    assert (found.value, found.exact, found.layout) == (expected.value, expected.exact, expected.layout)
