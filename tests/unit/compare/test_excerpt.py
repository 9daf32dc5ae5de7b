from __future__ import annotations

import pytest

from wiretape.compare.difference import Difference
from wiretape.compare.excerpt import covered, excerpts

KEY = "sk-live-8fJ2kQ9sLmX0aZ7tRwEv"


@pytest.mark.parametrize(
    ("recorded", "live", "shown"),
    [
        ("key [redacted:authorization:1].", f"key {KEY}.", "key [redacted:authorization:1]."),
        ("key [redacted:authorization:2], a", "key [redacted:authorization:1], b", "key [redacted:authorization:2], b"),
        ("[redacted:x:1] is a key", f"{KEY} was a key", "[redacted:x:1] was a key"),
        ("[redacted:x:1] is a key", "This was a key", "This was a key"),
        ("key [redacted:x:1]. It is", "key eyJhbGci.eyJzdWIi.c2lnbmF0. It was", "key [redacted:x:1]. It was"),
        ("[redacted:x:1] is it", f"{KEY} is it, too", "[redacted:x:1] is it, too"),
        ("it is [redacted:x:1]", f"so it is {KEY}", "so it is [redacted:x:1]"),
        ("[redacted:x:1]", KEY, "[redacted:x:1]"),
        ("a [redacted:x:1] b [redacted:x:2] c", "a one-of-two b two-of-two d", "a [redacted:x:1] b [redacted:x:2] d"),
        ("old key [redacted:x:1] end", f"new key {KEY} end; {KEY}", "new key [redacted:x:1] end; [redacted:x:1]"),
        ("key [redacted:x:1]", "quite another text", "quite another text"),
        ("nothing is hidden", f"key {KEY}", f"key {KEY}"),
    ],
)
def test_a_secret_is_replaced_by_its_placeholder_in_the_live_text(recorded: str, live: str, shown: str) -> None:
    assert covered(recorded, live) == shown


def test_two_values_with_a_secret_are_cut_around_their_difference() -> None:
    long = "x" * 200
    recorded, live = excerpts(Difference("p", f"[redacted:x:3] {long} mild {long}", f"{KEY} {long} wild {long}"), 60)
    assert (recorded.strip("x…"), live.strip("x…")) == (" mild ", " wild ")
