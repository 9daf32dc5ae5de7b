"""Which threads have asynchronous messages; how they match is in `test_match`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.replaying import chat, exchange, live, said, session, user

from wiretape.matching.async_messages import detect


def test_threads_of_one_call_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is held against what all others said: with thousands of them the first miss took minutes."""
    read: list[int] = []

    class Noting(detect._Reader):
        def __init__(self, told: detect.Told, *rest: Any) -> None:
            read.append(len(told.calls))
            super().__init__(told, *rest)

    monkeypatch.setattr(detect, "_Reader", Noting)
    one = [exchange(number, chat(user(f"question {number}"))) for number in range(1, 6)]
    begun = exchange(6, chat(user("begin")), "begun")
    more = exchange(7, chat(user("begin"), {"role": "assistant", "content": "begun"}, user("go on")), "done")
    replay = session(*one, begun, more)
    assert said(replay.answer(live(chat(user("nobody asked this"))))).startswith("miss")
    assert read == [2]
