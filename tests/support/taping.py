"""Builders for the tests of the tape: a manual clock, recorders, and JSON values for hypothesis."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from wiretape.model.http import Ended, Exchange, Layout
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

STARTED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
JSON_TYPE = [("content-type", "application/json")]
SSE_TYPE = [("content-type", "text/event-stream")]


class Clock:
    """A monotonic clock in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def tick(self, milliseconds: int) -> None:
        self.now += milliseconds / 1000


class Taping:
    """A recorder with a clock, and what it reported."""

    def __init__(self, path: Path, append: bool = False, redactor: Redactor | None = None, **more: Any) -> None:
        self.clock = Clock()
        self.exchanges: list[Exchange] = []
        self.troubles: list[str] = []
        self.recorder = Recorder(
            path,
            clock=self.clock,
            started=STARTED,
            redactor=redactor or Redactor(),
            on_exchange=self.exchanges.append,
            on_trouble=self.troubles.append,
            append=append,
            **more,
        )

    def call(
        self,
        request: bytes = b"",
        answer: Iterable[bytes] = (),
        headers: list[tuple[str, str]] | None = None,
        request_headers: list[tuple[str, str]] | None = None,
        ended: Ended = Ended.COMPLETE,
        url: str = "https://api.example.com/v1/chat/completions",
    ) -> int:
        """One exchange from start to end."""
        recorder = self.recorder
        x = recorder.begin("POST", url, "1.1", request_headers or JSON_TYPE)
        if request:
            recorder.request_data(x, request)
        recorder.request_end(x)
        self.clock.tick(5)
        recorder.response(x, 200, headers or JSON_TYPE)
        for chunk in answer:
            self.clock.tick(1)
            recorder.response_data(x, chunk)
        recorder.end(x, ended)
        return x


def spell(value: Any, layout: Layout = "compact", ascii: bool = False) -> bytes:
    """A JSON text as Python's own encoder writes it."""
    indent = {"indent2": 2, "indent4": 4}.get(layout)
    separators = (",", ":") if layout == "compact" else None
    return json.dumps(value, ensure_ascii=ascii, indent=indent, separators=separators).encode()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(texts, v, max_size=4), max_leaves=12)
objects = st.dictionaries(texts, values, max_size=5)
layouts: st.SearchStrategy[Layout] = st.sampled_from(["compact", "spaced", "indent2", "indent4"])
