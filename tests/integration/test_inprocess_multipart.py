"""Multipart forms in process: recorded whole, and compared part by part with any boundary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.upstream import Upstream

import wiretape
from wiretape.compare.multipart import parts_of
from wiretape.model.http import body_bytes
from wiretape.tape.reading.reader import read_tape

SOUND = b"RIFF\x00\x01\xff\xfe" * 100


def transcribe(name: str, url: str, sound: bytes) -> int:
    """A transcription request by each library."""
    where = f"{url}/v1/audio/transcriptions"
    library: Any = pytest.importorskip(name, reason=f"{name} is not installed")
    files = {"file": ("a.wav", sound, "audio/wav")}
    if name == "requests":
        status: int = library.post(where, data={"model": "whisper-1"}, files=files, timeout=10).status_code
        return status
    with library.Client(timeout=10) as client:
        return int(client.post(where, data={"model": "whisper-1"}, files=files).status_code)


@pytest.mark.parametrize("library", ["httpx", "httpx2", "requests"])
def test_a_form_is_recorded_whole_and_found_again(library: str, tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    with Upstream() as upstream, wiretape.record(tape):
        recorded = transcribe(library, upstream.url, SOUND)
    [exchange] = read_tape(tape).exchanges
    sent = parts_of(body_bytes(exchange.request.body), exchange.request.headers["content-type"])
    assert sent["part"]["model"] == {"content": "whisper-1"}
    assert sent["part"]["file"]["filename"] == "a.wav"
    assert sent["part"]["file"]["content"]["bytes"] == len(SOUND)
    with wiretape.replay(tape) as ctx:
        assert transcribe(library, upstream.url, SOUND) == recorded
    assert [played.tier for played in ctx.report.played] == ["exact"]


def test_another_sound_is_a_miss_that_names_the_part(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    with Upstream() as upstream, wiretape.record(tape):
        transcribe("httpx", upstream.url, SOUND)
    with pytest.raises(wiretape.MissError, match=r"part\.file\.content"), wiretape.replay(tape):
        assert transcribe("httpx", upstream.url, SOUND[::-1]) == 400
