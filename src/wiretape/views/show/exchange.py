"""Renders an exchange, or returns its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.model.http import Body, BytesBody, Exchange, Headers, JsonBody, StreamBody, TextBody, body_bytes
from wiretape.model.wording import duration_text, plural
from wiretape.views.blocks import shortened
from wiretape.views.figures import size
from wiretape.views.printable import clip, json_text, one_line, visible
from wiretape.views.prose import Heading, Indented, labelled
from wiretape.wire.mcp.traffic import describe_mcp


def exchange_view(exchange: Exchange, *, calls: tuple[int, ...] = (), full: bool = False) -> RenderableType:
    """Render an exchange that is not exactly one model call."""
    return _ExchangeView(exchange, calls, full)


@dataclass(frozen=True, slots=True)
class _ExchangeView:
    exchange: Exchange
    calls: tuple[int, ...]
    full: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        exchange, request, response = self.exchange, self.exchange.request, self.exchange.response
        yield Text.assemble((f"x{exchange.number}", "bold"), " · ", self._kind())
        yield Text(exchange_words(exchange), style="red" if response is None else "")
        yield Heading("request")
        method, url = one_line(request.method), Text(one_line(request.url))
        yield from labelled(console, method, url, options.max_width, label_width=len(method) + 1)
        yield from _content(request.headers, request.body, self.full)
        if response is not None:
            yield Heading("response")
            yield Text(str(response.status))
            yield from _content(response.headers, response.body, self.full)
        if exchange.messages:
            yield Heading(plural(len(exchange.messages), "message"))
            shown = exchange.messages if self.full else exchange.messages[:MOST_MESSAGES]
            for message in shown:
                arrow = "→" if message.sender == "client" else "←"
                head = f"{arrow} {duration_text(message.at):>8}  "
                words = body_text(message.body)
                yield Text(head + (visible(words) if self.full else clip(words, options.max_width - len(head))))
            if len(shown) < len(exchange.messages):
                yield Text(f"… {len(exchange.messages) - len(shown)} more; --full shows all", style="dim")

    def _kind(self) -> str:
        if not self.calls:
            return "no model call"
        numbers = ", ".join(map(str, self.calls))
        return f"holds {'call' if len(self.calls) == 1 else 'calls'} {numbers}"


MOST_MESSAGES = 40


def exchange_words(exchange: Exchange) -> str:
    """Return a summary on one line: subject, status, content type, size, duration, end."""
    response = exchange.response
    about = describe_mcp(exchange)
    said = [one_line(about)] if about is not None else []
    said.append("no response" if response is None else str(response.status))
    if response is not None:
        kind = response.headers.get("content-type", "").partition(";")[0]
        said += [one_line(kind)] if kind else []
        said.append(size(len(body_bytes(response.body))))
    if exchange.messages:
        said.append(plural(len(exchange.messages), "message"))
    if exchange.ended_at is not None:
        said.append(duration_text(exchange.ended_at - exchange.at))
    if exchange.ended != "complete":
        said.append(exchange.ended.replace("_", " ") if exchange.ended is not None else "still open")
    if exchange.close is not None:
        said.append(f"closed with {exchange.close.code}")
    return ", ".join(said)


def _content(headers: Headers, body: Body | None, full: bool) -> Iterator[RenderableType]:
    for name, value in headers.pairs():
        yield Text.assemble((f"{one_line(name)}: ", "dim"), one_line(value))
    if body is not None:
        yield Text()
        yield Indented(shortened(visible(body_text(body)), full), 2)


def body_text(body: Body) -> str:
    """Return a body as text: JSON indented, text unchanged, binary data as its size."""
    match body:
        case JsonBody(value=value):
            return json_text(value)
        case TextBody(text=text):
            return text
        case StreamBody(binary=False):
            return body_bytes(body).decode(errors="backslashreplace")
        case StreamBody() | BytesBody():
            return f"({plural(len(body_bytes(body)), 'byte')}; --raw writes them)"


def raw_exchange(exchange: Exchange) -> bytes:
    """Return the request and the response as bytes: heads, and bodies byte for byte."""
    request, response = exchange.request, exchange.response
    http = f"HTTP/{request.http or '1.1'}"
    parts = [_head(f"{request.method} {request.url} {http}", request.headers), body_bytes(request.body)]
    if response is not None:
        parts += [b"\n\n" if parts[-1] else b"", _head(f"{http} {response.status}", response.headers)]
        parts.append(body_bytes(response.body))
        if response.trailers:
            parts.append(_head("", response.trailers))
    for message in exchange.messages:
        data = body_bytes(message.body)
        parts += [f"\n\n{message.sender} at {message.at} ms, {len(data)} bytes\n".encode(), data]
    return b"".join(parts) + b"\n"


def _head(first: str, headers: Headers) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.pairs()), "", ""]
    return "\n".join(lines).encode(errors="surrogateescape")
