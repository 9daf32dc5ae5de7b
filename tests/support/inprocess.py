"""Calls through every patched library of this process, and the contents of their tapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wiretape.model.http import Exchange, StreamBody, body_bytes
from wiretape.tape.reading.reader import read_tape


def ask(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "scripted-1", "messages": [{"role": "user", "content": text}], **more}


def answers(path: Path) -> list[tuple[int | None, bytes, str | None]]:
    """Status, body and end of every exchange."""
    return [
        (x.response.status if x.response else None, body_bytes(x.response.body) if x.response else b"", x.ended)
        for x in read_tape(path).exchanges
    ]


def only(path: Path) -> Exchange:
    (exchange,) = read_tape(path).exchanges
    return exchange


def frames(exchange: Exchange) -> list[bytes]:
    assert exchange.response is not None
    assert isinstance(exchange.response.body, StreamBody)
    return list(exchange.response.body.frames)
