from __future__ import annotations

import json

import pytest

from wiretape.model.stream_text import INDEX_MEMBERS, Channels
from wiretape.tape.redaction import Redactor
from wiretape.tape.redaction.streams import redact_frames

KEY = "sk-proj-" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"


def deltas(index: str, first: list[str], second: list[str]) -> list[bytes]:
    """The deltas of two texts, interleaved."""
    events = [
        {index: number, "delta": text} for pair in zip(first, second, strict=True) for number, text in enumerate(pair)
    ]
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]


@pytest.mark.parametrize("index", sorted(INDEX_MEMBERS))
def test_interleaved_texts_are_joined_by_their_index(index: str) -> None:
    channels = Channels(deltas(index, ["al", "pha"], ["be", "ta"]))
    assert sorted(channel.text for channel in channels.all()) == ["alpha", "beta"]


@pytest.mark.parametrize("index", sorted(INDEX_MEMBERS))
def test_redaction_joins_the_same_deltas(index: str) -> None:
    frames, rewritten = redact_frames(Redactor(), deltas(index, [KEY[:20], KEY[20:]], ["some", "text"]))
    assert rewritten
    texts = [channel.text for channel in Channels(frames).all()]
    assert KEY not in texts
    assert "sometext" in texts


def test_a_replaced_text_keeps_the_other_frames() -> None:
    frames = deltas("index", ["al", "pha"], ["be", "ta"])
    channels = Channels(frames)
    channels.replace_text(next(channel for channel in channels.all() if channel.text == "alpha"), "omega")
    made = channels.frames()
    assert [made[1], made[3]] == [frames[1], frames[3]]
    assert sorted(channel.text for channel in Channels(made).all()) == ["beta", "omega"]
