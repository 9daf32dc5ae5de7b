"""Following live conversations in the trie of recorded ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from wiretape.matching.lookup.trie import NOWHERE, Trie


class Word:
    """An item with an identity of its own, as a parsed message has."""

    def __init__(self, text: str, *ids: str) -> None:
        self.text = text
        self.ids = ids


asked: list[str] = []


def classify(item: object) -> tuple[Hashable, Sequence[str]]:
    assert isinstance(item, Word)
    asked.append(item.text)
    return item.text, item.ids


def words(text: str) -> list[Word]:
    return [Word(part) for part in text.split()]


def test_a_recorded_conversation_leads_to_its_own_node() -> None:
    trie = Trie()
    one = trie.grow("chat", words("a b c"), classify, owner=0)
    other = trie.grow("chat", words("a b d"), classify, owner=1)
    assert one.end != other.end
    assert trie.follow("chat", words("a b c"), classify).end == one.end
    assert trie.follow("other", words("a b c"), classify).end == NOWHERE


def test_the_depth_says_where_a_conversation_diverges() -> None:
    trie = Trie()
    trie.grow("chat", words("a b c"), classify, owner=0)
    trie.grow("chat", words("a x y z"), classify, owner=1)
    path = trie.follow("chat", words("a x y q r"), classify)
    assert (path.depth, path.end) == (3, NOWHERE)
    assert [trie.owner(child) for child in trie.children(path.last)] == [1]
    assert trie.follow("chat", words("q"), classify).depth == 0


def test_ids_count_by_first_appearance() -> None:
    trie = Trie()
    recorded = trie.grow("chat", [Word("call", "a"), Word("call", "b"), Word("result", "a")], classify, owner=0)
    renamed = [Word("call", "x"), Word("call", "y"), Word("result", "x")]
    swapped = [Word("call", "x"), Word("call", "y"), Word("result", "y")]
    assert trie.follow("chat", renamed, classify).end == recorded.end
    assert trie.follow("chat", swapped, classify).end == NOWHERE


def test_a_known_prefix_is_not_classified_again() -> None:
    trie = Trie()
    history = words("a b c d e")
    for length in (3, 5):
        trie.grow("chat", history[:length], classify, owner=length)
    trie.forget_recent()
    live = words("a b c d e")
    trie.follow("chat", live[:3], classify)
    asked.clear()
    assert trie.owner(trie.follow("chat", live, classify).end) == 5
    assert asked == ["d", "e"]


def test_equal_but_new_objects_are_classified() -> None:
    trie = Trie()
    trie.grow("chat", words("a b"), classify, owner=0)
    trie.follow("chat", words("a b"), classify)
    asked.clear()
    assert trie.follow("chat", words("a x"), classify).end == NOWHERE
    assert asked == ["a", "x"]
