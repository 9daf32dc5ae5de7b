from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.support.calls import make_call, user

from wiretape.analyze.cache.prefix_tree import Elements, Prefixes, Sent
from wiretape.model.common_prefix import common_prefix

WORDS = [user(text) for text in "abc"]
sequences = st.lists(st.lists(st.sampled_from(WORDS), max_size=6), max_size=12)


@given(sequences)
def test_the_most_that_an_earlier_call_had_sent_is_found(histories: list[list]) -> None:  # type: ignore[type-arg]
    elements, prefixes, earlier = Elements(), Prefixes(), list[Sent]()
    for number, messages in enumerate(histories, 1):
        sent = elements.sent(make_call(number, messages))
        prefixes.add(sent)
        most = max((common_prefix(one.numbers, sent.numbers) for one in earlier), default=0)
        assert sent.shared == most
        assert (sent.base is None) == (most == 0)
        if sent.base is not None:
            assert sent.base.numbers[:most] == sent.numbers[:most]
        earlier.append(sent)


def test_what_says_the_same_has_the_same_number() -> None:
    elements = Elements()
    first, marked = user("hi"), replace(user("hi"), cache_marked=True)
    assert elements.sent(make_call(1, [first])).numbers == elements.sent(make_call(2, [marked])).numbers
    assert elements.sent(make_call(3, [user("hi!")])).numbers != elements.sent(make_call(4, [first])).numbers


def test_a_text_is_as_long_as_its_bytes() -> None:
    elements = Elements()
    latin = elements.size(elements.sent(make_call(1, [user("abc")])).numbers)
    wide = elements.size(elements.sent(make_call(2, [user("你好吗")])).numbers)
    assert wide - latin == 6
