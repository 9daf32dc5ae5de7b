from __future__ import annotations

from wiretape.model.wording import clip, listed, numbered, plural


def test_a_number_with_its_noun() -> None:
    assert plural(1, "call") == "1 call"
    assert plural(0, "call") == "0 calls"
    assert plural(2, "entry", "entries") == "2 entries"
    assert plural(1234, "call") == "1,234 calls"


def test_a_clipped_text_is_no_longer_than_asked() -> None:
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdefg", 6) == "abcde…"


def test_a_long_list_is_cut() -> None:
    assert listed([1, 2, 3]) == "1, 2, 3"
    assert listed([1, 2, 3], 2) == "1, 2, …"
    assert numbered("call", [3]) == "call 3"
    assert numbered("call", [3, 4, 5], 2) == "calls 3, 4, …"
