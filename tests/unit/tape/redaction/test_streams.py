"""Frames of a known form are not parsed: that must never change what comes out."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.tape.redaction import Redactor
from wiretape.tape.redaction.streams import Forms

SECRET = "zX81plainCredential77"
TEXTS = st.sampled_from(
    ["", "a", "type", "x.delta", "y.delta", SECRET[:6], SECRET[6:15], SECRET[15:], SECRET, '"', "é"]
)
EVENTS = st.one_of(
    st.builds(lambda t, d: {"type": t, "delta": d}, TEXTS, TEXTS),
    st.builds(lambda t, d: {"delta": t, "type": d}, TEXTS, TEXTS),
    st.builds(lambda i, d, x: {"index": i, "delta": {"text": d, "type": x}}, st.integers(0, 1), TEXTS, TEXTS),
    st.builds(
        lambda a, b: {"choices": [{"index": 0, "delta": {"content": a}}, {"index": 1, "delta": b}]}, TEXTS, TEXTS
    ),
    st.builds(lambda a, b: {"a": [a, b], "id": "r1"}, TEXTS, TEXTS),
    st.builds(lambda a: a, TEXTS),
)


def never(*_: Any) -> bool:
    return False


@given(events=st.lists(EVENTS, max_size=12))
def test_frames_of_a_known_form_are_redacted_as_if_they_were_parsed(events: list[Any]) -> None:
    frames = [b"data: " + orjson.dumps(event) + b"\n\n" for event in events]
    made = []
    for parse_all in (False, True):
        redactor = Redactor()
        redactor.learn([("x-api-key", SECRET)], "")
        with pytest.MonkeyPatch.context() as patch:
            if parse_all:
                patch.setattr(Forms, "read", never)
            made.append(redactor.frames(frames))
    assert made[0] == made[1]
    assert SECRET.encode() not in b"".join(made[0][0])
