"""The answer pool: same host first, then earliest, each once."""

from __future__ import annotations

from wiretape.matching.lookup.index import AnswerPool


def test_the_same_host_goes_first_then_the_earliest() -> None:
    played = bytearray(3)
    shelf = AnswerPool(played)
    for number, host in enumerate(["a", "b", "a"]):
        shelf.put("key", host, number)
    order = []
    for host in ("b", "c", "b"):
        found = shelf.peek("key", host)
        assert found is not None
        played[found] = True
        order.append(found)
    assert order == [1, 0, 2]
    assert shelf.peek("key", "b") is None
    assert shelf.last_played("key", "b") == 1
    assert shelf.last_played("key", "c") == 2


def test_a_call_that_another_tier_gave_is_gone() -> None:
    played = bytearray(2)
    shelf = AnswerPool(played)
    shelf.put("key", "a", 0)
    shelf.put("key", "a", 1)
    played[0] = True
    assert shelf.peek("key", "a") == 1


def test_a_strict_look_takes_no_other_host() -> None:
    shelf = AnswerPool(bytearray(1))
    shelf.put("key", "a", 0)
    assert shelf.peek("key", "b", strict=True) is None
    assert shelf.last_played("key", "b", strict=True) is None
    assert shelf.peek("other", "a") is None
    assert shelf.last_played("other", "a") is None
