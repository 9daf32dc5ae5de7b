"""Take a file of recorded traffic through import, tape and decoding, and count the results.

What an exchange should be is told by its URL alone here, and its usage by its raw bytes (`told_usage`): the verdict
does not rest on the code that it is about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.told_usage import Told, told_usage
from wiretape.adapters.importers.importing import ImportedExchange, import_files
from wiretape.adapters.importers.write_imported import write_imported
from wiretape.model.call import Message, ModelCall, Reasoning, Text, ToolCall, Unknown
from wiretape.model.http import Exchange
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.redaction import Redactor
from wiretape.wire.lenient import raw_bytes
from wiretape.wire.registry import Registry, built_in, decode

# The tails of paths that are model calls, and the format that each is.
CALLS = {
    r"/chat/completions$": "openai.chat",
    r"/responses(/compact|/input_tokens)?$": "openai.responses",
    r"(?<!threads)/messages(/count_tokens)?$|:(rawPredict|streamRawPredict)$": "anthropic.messages",
    r":(generateContent|streamGenerateContent|countTokens|computeTokens)$": "gemini.generate",
    r"/interactions$": "gemini.interactions",
    r"/converse(-stream)?$": "bedrock.converse",
    r"/invoke(-with-response-stream)?$": "bedrock.invoke",
    r"/count-tokens$": "bedrock.",
    r"/api/chat$": "ollama.chat",
    r"/api/generate$": "ollama.generate",
    r"/v2/chat$": "cohere.chat",
    r"(?<!/chat)/completions$": "openai.completions",
    r"/(embeddings?|embed)$": "embeddings",
    r":(embedContent|batchEmbedContents)$|embedding[^/]*:predict$": "gemini.embedContent",
    r"/rerank$": "rerank",
    r"/moderations$": "moderations",
    r"/v\d/tokenize$": "tokenize",
}
BARE = "unknown:"  # the URL for a body that was recorded without its request
BROKEN = ("body", "text", "response", "undecoded", "corrupt_event_stream", "unreadable_event", "unreadable_message",
          "binary_message", "client_message", "event")  # fmt: skip
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NUMBERS = ("files", "exchanges", "model_shaped", "recognised", "calls", "other_calls", "usage_told", "usage_equal",
           "twins", "twins_equal")  # fmt: skip
NAMED = ("unknown", "errors", "refused", "unrecognised", "shows_nothing", "usage_differs", "twins_differ")
Shape = tuple[Any, ...]


@dataclass
class Findings:
    """Counts of a file's exchanges, calls and names."""

    numbers: Counter[str] = field(default_factory=Counter)
    named: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in NAMED})
    kinds: Counter[str] = field(default_factory=Counter)  # formats of calls
    rest: Counter[str] = field(default_factory=Counter)  # exchanges that are not model calls, by kind
    shapes: dict[str, list[Shape]] = field(default_factory=dict)  # of each file's calls, for twins
    seconds: float = 0.0

    def add(self, other: Findings) -> None:
        self.numbers += other.numbers
        for name in NAMED:
            self.named[name] += other.named[name]
        self.kinds += other.kinds
        self.rest += other.rest
        self.shapes |= other.shapes
        self.seconds += other.seconds


def prove(path: Path, name: str, tape: Path, form: str = "auto") -> Findings:
    """Import a file, write its tape, read that, decode, and judge. `name`: the name of the file in the report."""
    found = Findings()
    found.numbers["files"] = 1
    outcomes = list(import_files([path], form))
    taken = [one for one in outcomes if isinstance(one, ImportedExchange)]
    for one in outcomes:
        if not isinstance(one, ImportedExchange):
            found.named["refused"][f"{one.reason}: {name}" if one.entry is None or form == "body" else one.reason] += 1
    if taken:
        placed = write_imported(tape, taken, NOW, Redactor(), None)
        _judge(found, name, placed.exchanges, tape)
    return found


def _judge(found: Findings, name: str, imported: tuple[Exchange, ...], path: Path) -> None:
    tape = read_tape(path)
    registry = Registry(built_in())
    calls = decode(tape.exchanges, registry)
    by_exchange: dict[int, list[ModelCall]] = {}
    for call in calls:
        by_exchange.setdefault(call.exchange, []).append(call)
        _count(found, name, call)
    for problem in [*registry.problems, *tape.warnings]:
        found.named["errors"][f"{problem}: {name}"] += 1
    settled = [_told(one) for one in imported if one.request.method.upper() == "GET"]
    for original, read in zip(imported, tape.exchanges, strict=True):
        mine = by_exchange.get(read.number, [])
        _recognised(found, name, original, registry, mine)
        if len(mine) == 1 and not original.messages:
            _compare(found, name, mine[0], [_told(original), *settled])
        elif original.messages:
            _compare_socket(found, name, mine, original)
    found.shapes[name] = [shape(call) for call in calls if call.kind == "inference" and call.response is not None]


def _told(exchange: Exchange) -> Told | None:
    if exchange.response is None or exchange.response.status >= 400:
        return None
    return told_usage(raw_bytes(exchange.response.body), exchange.response.headers)


def expected_format(exchange: Exchange) -> str | None:
    """The wire format of the URL; "" for any format, None for other requests."""
    if exchange.request.url.startswith(BARE):
        return None if exchange.messages else ""
    path = re.split(r"[?#]", exchange.request.url)[0].replace("%3A", ":").rstrip("/")
    if exchange.messages:
        return "openai.responses" if path.endswith("/responses") else None
    if exchange.request.method.upper() != "POST" or b'"jsonrpc"' in raw_bytes(exchange.request.body)[:2000]:
        return None
    return next((name for tail, name in CALLS.items() if re.search(tail, path)), None)


def _recognised(found: Findings, name: str, exchange: Exchange, registry: Registry, calls: list[ModelCall]) -> None:
    found.numbers["exchanges"] += 1
    expected = expected_format(exchange)
    form = registry.socket_format(exchange) if exchange.messages else registry.recognise(exchange)
    if form is None and (expected is None or exchange.request.url.startswith(BARE)):
        found.rest[_what(exchange)] += 1
        if expected is not None:
            found.named["shows_nothing"][name] += 1  # neither does its request, which was not recorded
        return
    found.numbers["model_shaped"] += 1
    if form is None:
        found.named["unrecognised"][f"{exchange.request.method} {exchange.request.url.partition('?')[0]}"] += 1
    elif expected is None or not form.name.startswith(expected):
        found.named["unrecognised"][f"{name}: taken for {form.name}, not {expected}"] += 1
    else:
        found.numbers["recognised"] += 1
    if form is not None and not calls:
        found.named["errors"][f"no call: {name}"] += 1


def _what(exchange: Exchange) -> str:
    """The kind of an exchange that is not a model call."""
    url = exchange.request.url.partition("?")[0]
    if exchange.messages:
        return "realtime WebSocket"
    if url.startswith(BARE):
        return "a body that shows no format"
    if b'"jsonrpc"' in raw_bytes(exchange.request.body)[:2000] or "mcp-session-id" in exchange.request.headers:
        return "JSON-RPC"
    tail = re.sub(r"^\w+://[^/]*", "", url)
    return f"{exchange.request.method} {re.sub(r'[^/]*[0-9-]{2}[^/]*|(?<=repos/).*', '*', tail)}"


def _count(found: Findings, name: str, call: ModelCall) -> None:
    found.numbers["calls" if call.kind == "inference" else "other_calls"] += 1
    found.kinds[call.format if call.kind == "inference" else f"{call.format} {call.kind}"] += 1
    answered: tuple[Message, ...] = () if call.response is None else call.response.messages
    for block in (b for m in (*call.request.messages, *answered) for b in m.blocks):
        if isinstance(block, Unknown):
            where = f"{block.type or '(none)'}"
            if block.type in BROKEN:
                found.named["errors"][f"{where}: {name}"] += 1
            else:
                found.named["unknown"][where] += 1
    response = call.response
    if response is None:
        found.named["errors"][f"no response: {name}"] += 1
    elif response.error is None and not response.complete:
        found.named["errors"][f"cut short: {name}"] += 1
    elif response.error is None and not response.messages and response.finish is None and call.kind == "inference":
        found.named["errors"][f"says nothing: {name}"] += 1


def _compare(found: Findings, name: str, call: ModelCall, told: list[Told | None]) -> None:
    own, *later = told
    if call.kind == "token_count":
        own = None  # a count of tokens is the answer, not what it cost
    wanted = own if own is not None or call.usage is None else next((one for one in later if one), None)
    if wanted is None and call.usage is None:
        return
    if wanted is not None and call.response is not None and not call.response.complete:
        wanted = wanted._replace(output=None, reasoning=None)  # the output so far of a stream that was cut
    found.numbers["usage_told"] += 1
    if call.kind == "embedding" and wanted is not None and not wanted.output:
        wanted = wanted._replace(output=None)  # a vector has no tokens
    usage = call.usage
    mine = None if usage is None else Told(usage.input, usage.cached, usage.cache_write, usage.output, usage.reasoning)
    if _same(mine, wanted) or any(_same(mine, one) for one in later):
        found.numbers["usage_equal"] += 1
    else:
        found.named["usage_differs"][f"{name}: {_spelled(mine)} for {_spelled(wanted)}"] += 1


def _spelled(told: Told | None) -> str:
    return "nothing" if told is None else f"{tuple(told)}"


def _same(mine: Told | None, told: Told | None) -> bool:
    return mine is not None and told is not None and mine == told


def _compare_socket(found: Findings, name: str, calls: list[ModelCall], exchange: Exchange) -> None:
    told = [told_usage(raw_bytes(m.body), {}) for m in exchange.messages if m.sender == "server"]
    if not calls:
        return
    wanted = sorted((tuple(one) for one in told if one is not None), key=repr)
    usages = [call.usage for call in calls if call.usage is not None]
    mine = sorted(((u.input, u.cached, u.cache_write, u.output, u.reasoning) for u in usages), key=repr)
    found.numbers["usage_told"] += len(wanted)
    if mine == wanted:
        found.numbers["usage_equal"] += len(wanted)
    else:
        found.named["usage_differs"][f"{name}: {mine} for {wanted}"] += 1


# -- twins: the same case recorded streamed and not --------------------------------------------------------------


def shape(call: ModelCall) -> Shape:
    """The kinds of a call's blocks. Models answer differently each time: texts differ, and so does reasoning or text
    before a tool call. The blocks of the request, as far as it does not repeat that.
    """
    assert call.response is not None
    blocks: list[str] = []
    for block in (b for m in call.response.messages for b in m.blocks):
        kind = type(block).__name__
        if isinstance(block, ToolCall):
            blocks.append(f"{kind} {block.name}")
        elif not isinstance(block, Reasoning) and not (isinstance(block, Text) and blocks[-1:] == [kind]):
            blocks.append(kind)
    called = [name for name in blocks if name != "Text"]
    asked = tuple(type(b).__name__ for m in call.request.messages for b in m.blocks if m.role != "assistant")
    return tuple(called or blocks), call.response.finish, bool(call.response.error), asked


def compare_twins(found: Findings) -> None:
    """Pairs by name: `x_streaming.yaml` and `x.yaml`."""
    for name, streamed in sorted(found.shapes.items()):
        plain = found.shapes.get(re.sub(r"[-_]streaming\.yaml$", ".yaml", name))
        if plain is None or not name.endswith("streaming.yaml"):
            continue
        found.numbers["twins"] += 1
        if streamed == plain:
            found.numbers["twins_equal"] += 1
        else:
            first = next((pair for pair in zip(streamed, plain, strict=False) if pair[0] != pair[1]), None)
            said = f"{first[0]} | {first[1]}" if first else f"{len(streamed)} | {len(plain)} calls"
            found.named["twins_differ"][f"{name}: {said}"] += 1


def total(all_of_them: Iterable[Findings]) -> Findings:
    whole = Findings()
    for one in all_of_them:
        whole.add(one)
    return whole
