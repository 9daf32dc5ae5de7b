"""Multipart forms are compared part by part; boundaries do not count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.replaying import exchange, session

from wiretape.compare.difference import Tier
from wiretape.compare.multipart import parts_of
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, LiveRequest, Miss, Outcome, Stray
from wiretape.model.http import BytesBody, Headers

AUDIO = b"RIFF\x00\x01\xff\xfe" * 40
SPEECH = "https://api.openai.com/v1/audio/transcriptions"
FILES = "https://api.openai.com/v1/files"


def part(name: str, content: bytes, filename: str = "", type: str = "") -> bytes:
    named = f'; filename="{filename}"' if filename else ""
    typed = f"content-type: {type}\r\n" if type else ""
    return f'content-disposition: form-data; name="{name}"{named}\r\n{typed}\r\n'.encode() + content


def form(*parts: bytes, boundary: str = "one-boundary") -> bytes:
    lines = b"".join(b"--%b\r\n%b\r\n" % (boundary.encode(), one) for one in parts)
    return lines + b"--%b--\r\n" % boundary.encode()


def speech(
    boundary: str = "one-boundary", audio: bytes = AUDIO, model: bytes = b"whisper-1", name: str = "a.wav"
) -> bytes:
    return form(part("model", model), part("file", audio, name, "audio/wav"), boundary=boundary)


def recorded(body: bytes, boundary: str = "one-boundary", url: str = SPEECH) -> ReplaySession:
    made = exchange(1, None, {"text": "hello"}, url=url)
    headers = Headers([("content-type", f"multipart/form-data; boundary={boundary}")])
    return session(replace(made, request=replace(made.request, headers=headers, body=BytesBody(body))))


def sent(replay: ReplaySession, body: bytes, boundary: str = "one-boundary", url: str = SPEECH) -> Outcome:
    headers = Headers([("content-type", f'multipart/form-data; boundary="{boundary}"')])
    return replay.answer(LiveRequest("POST", url, headers, body))


def test_the_boundary_and_the_order_of_parts_do_not_count() -> None:
    outcome = sent(recorded(speech()), speech("another--boundary"), "another--boundary")
    assert isinstance(outcome, Answer)
    assert outcome.tier is Tier.EXACT
    moved = form(part("file", AUDIO, "a.wav", "audio/wav"), part("model", b"whisper-1"))
    assert isinstance(sent(recorded(speech()), moved), Answer)


@pytest.mark.parametrize(
    ("changed", "where", "live"),
    [
        (speech(model=b"gpt-4o-transcribe"), "part.model.content", "gpt-4o-transcribe"),
        (speech(name="b.wav"), "part.file.filename", "b.wav"),
        (speech(audio=AUDIO + b"\x00"), "part.file.content.bytes", len(AUDIO) + 1),
        (form(part("model", b"whisper-1"), part("file", AUDIO, "a.wav", "audio/mpeg")), "part.file.type", "audio/mpeg"),
    ],
)  # fmt: skip
def test_a_miss_names_the_part_that_differs(changed: bytes, where: str, live: Any) -> None:
    outcome = sent(recorded(speech()), changed)
    assert isinstance(outcome, Miss)
    assert outcome.reason == "diverged"
    assert (outcome.differences[0].where, outcome.differences[0].live) == (where, live)
    assert f"it diverges from x1 at {where}" in outcome.message


def test_a_part_that_came_or_went_is_named_whole() -> None:
    outcome = sent(
        recorded(speech()),
        form(part("model", b"whisper-1"), part("file", AUDIO, "a.wav", "audio/wav"), part("language", b"en")),
    )
    assert isinstance(outcome, Miss)
    assert [difference.where for difference in outcome.differences] == ["part.language"]


def test_another_sound_of_the_same_length_is_never_taken_for_the_same() -> None:
    """A fingerprint is no id that a mask may hide."""
    outcome = sent(recorded(speech()), speech(audio=AUDIO[::-1]))
    assert isinstance(outcome, Miss)
    assert [difference.where for difference in outcome.differences] == ["part.file.content.fingerprint"]


def test_text_in_a_part_is_masked_and_reported_as_drift() -> None:
    asked = form(part("prompt", b"recorded on 2026-02-28 15:05:30"), part("file", AUDIO, "a.wav"))
    outcome = sent(
        recorded(asked), form(part("prompt", b"recorded on 2027-03-01 09:23:47"), part("file", AUDIO, "a.wav"))
    )
    assert isinstance(outcome, Answer)
    assert outcome.tier is Tier.MASKED
    assert [difference.where for difference in outcome.differences] == ["part.prompt.content"]


def test_an_upload_of_another_file_is_a_stray_that_names_the_part() -> None:
    body = form(part("purpose", b"batch"), part("file", b'{"n": 1}\n', "a.jsonl"))
    replay = recorded(body, url=FILES)
    outcome = sent(replay, form(part("purpose", b"batch"), part("file", b'{"n": 2}\n', "a.jsonl")), url=FILES)
    assert isinstance(outcome, Stray)
    assert "x1 differs at part.file.content" in outcome.note
    assert isinstance(sent(replay, body, url=FILES), Answer)


def test_a_transcription_that_was_played_already_is_a_miss() -> None:
    replay = recorded(speech())
    assert isinstance(sent(replay, speech()), Answer)
    again = sent(replay, speech())
    assert isinstance(again, Miss)
    assert again.reason == "already played"


def test_parts_of_one_name_keep_their_order() -> None:
    two = form(part("image[]", b"one", "1.png"), part("image[]", b"two", "2.png"))
    other = form(part("image[]", b"two", "2.png"), part("image[]", b"one", "1.png"))
    assert parts_of(two, "") != parts_of(other, "")
    assert parts_of(two, "") == {
        "part": {"image[]": [{"filename": "1.png", "content": "one"}, {"filename": "2.png", "content": "two"}]}
    }


def test_names_are_read_as_clients_spell_them() -> None:
    body = (
        b"--b0undary\r\nContent-Type: text/plain\r\n"
        b"Content-Disposition: form-data; filename*=UTF-8''na%C3%AFve.txt; name=file\r\n\r\nx\r\n--b0undary--"
    )
    read = parts_of(body, "multipart/form-data; boundary=b0undary")
    assert read == {"part": {"file": {"filename": "naïve.txt", "type": "text/plain", "content": "x"}}}


def test_other_bytes_are_not_a_form() -> None:
    assert parts_of(b"--- a diff\r\n+++ b\r\n", "text/plain") is None
    assert parts_of(b"", "multipart/form-data; boundary=x") is None


@given(
    st.lists(st.tuples(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.binary(max_size=60)), min_size=1, max_size=4),
    st.from_regex(r"[0-9A-Za-z]{16,30}", fullmatch=True),
)
def test_any_content_is_compared_whatever_the_boundary(parts: list[tuple[str, bytes]], boundary: str) -> None:
    made = [part(name, content) for name, content in parts]
    one = parts_of(form(*made, boundary=boundary), f"multipart/form-data; boundary={boundary}")
    other = parts_of(form(*made, boundary="other" * 8), "multipart/form-data; boundary=" + "other" * 8)
    assert one == other is not None
    changed = [*made[:-1], part(parts[-1][0], parts[-1][1] + b"!")]
    assert parts_of(form(*changed, boundary=boundary), f"multipart/form-data; boundary={boundary}") != one
