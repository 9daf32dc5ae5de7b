"""Law 9 for redaction: linear in the text, even if it consists of different secrets only."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from tests.support.costs import calls

from wiretape.model.http import Ended
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor, Regions

SLICE = 65_536  # bytes that the proxy hands over at a time
source = random.Random()


def some(length: int, characters: str = string.ascii_letters + string.digits) -> str:
    return "".join(source.choices(characters, k=length))


def _lines(line: Callable[[int], str], count: int) -> str:
    return "\n".join(map(line, range(count)))


def _basic(number: int) -> str:
    return base64.b64encode(f"user{number}:{some(16)}".encode()).decode()


DENSE: dict[str, Callable[[int], str]] = {
    "json list": lambda n: json.dumps([{"id": i, "token": some(24)} for i in range(n)]),
    "json pairs": lambda n: json.dumps([{"name": "API_KEY", "value": some(24)} for _ in range(n)]),
    "keys": lambda n: _lines(lambda i: f"sk-{some(26)}", n),
    "jwts": lambda n: _lines(lambda i: f"eyJ{some(33)}.eyJ{some(80)}.{some(43)}", n),
    "aws": lambda n: _lines(
        lambda i: f"aws_access_key_id = AKIA{some(16, string.ascii_uppercase)}\naws_secret_access_key = {some(40)}", n
    ),
    ".env": lambda n: _lines(lambda i: f"SERVICE_{i}_API_KEY={some(32)}", n),
    "yaml": lambda n: _lines(lambda i: f"- name: s{i}\n  password: {some(20)}", n),
    "yaml with marks": lambda n: _lines(lambda i: f"password: {some(24, string.ascii_letters + '1234!@#$%^&*+/')}", n),
    "bearer headers": lambda n: _lines(lambda i: f"Authorization: Bearer {some(40)}", n),
    "basic headers": lambda n: _lines(lambda i: f"Authorization: Basic {_basic(i)}", n),
    "cookies": lambda n: _lines(lambda i: f"Cookie: sid={some(24)}; other={some(30)}", n),
    "urls": lambda n: _lines(lambda i: f"https://h/x?token={some(24)}", n),
    "connection strings": lambda n: _lines(lambda i: f"postgres://u:{some(20)}@h/db", n),
    "webhooks": lambda n: _lines(lambda i: f"https://hooks.slack.com/services/T{some(8)}/B{some(8)}/{some(24)}", n),
    "form fields": lambda n: _lines(lambda i: f'--b\r\nform-data; name="token"\r\n\r\n{some(24)}\r', n),
    "xml": lambda n: _lines(lambda i: f"<password>{some(20)}</password>", n),
    "log lines": lambda n: _lines(lambda i: f"12:00:{i % 60:02} INFO call key=sk-proj-{some(30)} user={i} ok", n),
    "one secret": lambda n: '{"token":"abc123def456ghi789"},' * n,
    "?key= runs": lambda n: "?key=" * 8 * n,
    "eyJ runs": lambda n: "eyJ" * 12 * n,
    "token runs": lambda n: "token: " * 6 * n,
    "placeholders": lambda n: _lines(lambda i: f"[redacted:api-key:{i}]", n),
}
ORDINARY: dict[str, Callable[[int], str]] = {
    "prose": lambda n: "The agent read 2026 files at 14:05, and 87 tests passed before step 42 of plan 3. " * n,
    "code": lambda n: _lines(
        lambda i: f"def _get_name_{i}(self, *, max_tokens=None):\n    return self._names.get('x-{i}', Api.Call_it)", n
    ),
    "hex ids": lambda n: _lines(lambda i: some(32, "0123456789abcdef"), n),
    "base64": lambda n: base64.b64encode(bytes(range(256)) * (n // 3)).decode(),
    "chinese": lambda n: "今天是 2026年02月28日 15时05分30秒 星期六。" * n,
}


def text_of(name: str, count: int) -> str:
    """A text with so many secrets or lines: the same at every run."""
    source.seed(name)
    return {**DENSE, **ORDINARY}[name](count)


def body_of(text: str) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "tool", "tool_call_id": "c", "content": text}]}).encode()


def arguments_of(text: str) -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": json.dumps({"text": text})}}
    return json.dumps({"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}).encode()


def chunks_of(text: str) -> list[bytes]:
    pieces = [text[at : at + 20] for at in range(0, len(text), 20)]
    return [b"data: %b\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": p}}]}).encode() for p in pieces]


def redact_slices(redactor: Redactor, slices: list[bytes]) -> bytes:
    """As the recorder does it: the end of a slice waits for the next one."""
    regions, held, made = Regions(), b"", []
    for data in [*slices, b""]:
        text = held + data
        cut = len(text) - redactor.unfinished(text) if data else len(text)
        ready, held = text[:cut], text[cut:]
        regions.add(ready)
        made.append(redactor.data(ready, regions))
    return b"".join(made)


def redact_body(body: bytes) -> None:
    redactor = Redactor()
    slices = [body[at : at + SLICE] for at in range(0, len(body), SLICE)]
    redactor.value(json.loads(redact_slices(redactor, slices)))


def redact_stream(chunks: list[bytes]) -> None:
    redactor = Redactor()
    redact_slices(redactor, chunks)
    redactor.frames(chunks)


WAYS: dict[str, Callable[[str], Callable[[], None]]] = {
    "body": lambda text: partial(redact_body, body_of(text)),
    "arguments": lambda text: partial(redact_body, arguments_of(text)),
    "stream": lambda text: partial(redact_stream, chunks_of(text)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DENSE)
def test_four_times_the_secrets_cost_at_most_five_times_the_work(name: str, way: str) -> None:
    """Work is counted in calls of functions, so a busy machine changes nothing."""
    n = 100 if way == "stream" else 300
    redact = [WAYS[way](text_of(name, size)) for size in (n, 4 * n)]
    redact[0]()  # what is loaded and remembered once
    few, many = map(calls, redact)
    assert many < 5 * few + 1000


def _seconds(work: Callable[[], object]) -> float:
    def once() -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    return min(once() for _ in range(2))


def _plain_work(text: str) -> None:
    """What no reader of JSON can do without, and one pass for words in Python: the measure of this machine."""
    json.loads(json.dumps(text))
    sum(len(word[0]) for word in re.finditer(r"\w+|\W+", text))


SIZE = 120_000  # characters


def _scaled(name: str) -> str:
    return text_of(name, 1 + SIZE * 100 // len(text_of(name, 100)))[:SIZE]


def _recorded(body: bytes, chunks: list[bytes], path: Path) -> None:
    recorder = Recorder(path, clock=time.monotonic, started=datetime.now(UTC), redactor=Redactor())
    x = recorder.begin("POST", "https://api.example.com/v1/chat/completions", "1.1", [])
    for at in range(0, len(body), SLICE):
        recorder.request_data(x, body[at : at + SLICE])
    recorder.request_end(x)
    recorder.response(x, 200, [("content-type", "text/event-stream")])
    for chunk in chunks:
        recorder.response_data(x, chunk)
    recorder.end(x, Ended.COMPLETE)
    assert not recorder.close().incomplete


# Measured: dense bodies up to 12 times the plain work, ordinary ones up to 1.5 times, dense streams up to 44 times (a
# stream has 50 frames for each 1,000 characters). A slow machine is slow at both. A search that takes a fixed time for
# each chunk, or compares all secrets with all texts, is far beyond these limits.
LIMITS = {"dense body": 40, "ordinary body": 10, "dense stream": 150}


@pytest.mark.parametrize("name", DENSE)
def test_a_body_full_of_secrets_is_recorded_in_a_few_passes(name: str, tmp_path: Path) -> None:
    text = _scaled(name)
    plain = _seconds(lambda: _plain_work(SAMPLE))
    body = body_of(text)
    assert _seconds(lambda: _recorded(body, [b"data: {}\n\n"], tmp_path / "a.tape")) < LIMITS["dense body"] * plain


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_body_is_recorded_in_a_few_passes(name: str, tmp_path: Path) -> None:
    text = _scaled(name)
    plain = _seconds(lambda: _plain_work(SAMPLE))
    body = body_of(text)
    assert _seconds(lambda: _recorded(body, [b"data: {}\n\n"], tmp_path / "a.tape")) < LIMITS["ordinary body"] * plain


@pytest.mark.parametrize("name", ["keys", "json list", "aws", "log lines", "cookies"])
def test_a_stream_full_of_secrets_is_recorded_in_a_few_passes(name: str, tmp_path: Path) -> None:
    text = _scaled(name)[: SIZE // 5]
    plain = _seconds(lambda: _plain_work(SAMPLE)) / 5
    chunks = chunks_of(text)
    assert _seconds(lambda: _recorded(b"{}", chunks, tmp_path / "a.tape")) < LIMITS["dense stream"] * plain


SAMPLE = _scaled("prose")
