"""Makes a tape of other tapes: without secrets, a part of one, or several as one.

All go through the writer, so that bodies share again what they have in common. Exchanges keep their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from wiretape.errors import TapeError, UsageError
from wiretape.model.http import Body, Exchange, JsonBody, Response, TextBody, body_bytes
from wiretape.tape.client_versions import united, versions_of
from wiretape.tape.editing.identity import clock, identities
from wiretape.tape.format.documents import VERSION, Header, IncompleteDocument, parse_document
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.reading.splitting import split_text
from wiretape.tape.redaction import Redactor
from wiretape.tape.storage import TapeFile, journal_path, read_text, readable_text
from wiretape.tape.writing.writer import TapeWriter, document_text, header_document, replace_tape


@dataclass(frozen=True, slots=True)
class Edited:
    """What an edit did."""

    exchanges: int
    redacted: dict[str, int]  # kind -> how many times one was replaced
    warnings: tuple[str, ...] = ()
    shared: int = 0  # exchanges that several tapes had, beyond the first of each


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the recorder could not keep."""

    at: int
    reason: str
    exchanges: tuple[int, ...]


def redact_tape(path: Path, out: Path, redactor: Redactor, partial: bool = False) -> Edited:
    """Write a tape again without its secrets, on itself or elsewhere. Fails without having changed anything.

    `partial`: leave the damaged parts of a tape out, instead of raising TapeDamaged.
    """
    if not same_file(path, out):
        return _redact(path, out, redactor, partial)
    if not path.is_file() and not journal_path(path).exists():
        read_text(path)  # says what is wrong
    with closing(TapeFile(path)):  # its lock keeps recorders out
        edited = _redact(path, out, redactor, partial)
    journal_path(path).unlink(missing_ok=True)  # what it held is in the tape now; here it still has its secrets
    return edited


def _redact(path: Path, out: Path, redactor: Redactor, partial: bool) -> Edited:
    tape = read_tape(path, partial)
    found = learn_all(tape.exchanges, redactor, path)
    if not (found or tape.damage or journal_path(path).exists()) and same_file(path, out):
        return Edited(len(tape.exchanges), {}, tape.warnings)
    return _write(out, tape.header, tape.exchanges, gaps_of(tape), redactor, tape.warnings)


def learn_all(exchanges: Sequence[Exchange], redactor: Redactor, path: Path) -> bool:
    """Teach the redactor all credentials of a tape, so that it also finds their earlier occurrences.

    Whether there is anything to replace.
    """
    redactor.resume(_text(path))
    learn_heads(exchanges, redactor)
    rehearsal = TapeWriter(lambda document: None, redactor)
    for exchange in exchanges:
        rehearsal.exchange(with_whole_messages(exchange, redactor))
    found = bool(redactor.counts)
    redactor.forget_counts()
    return found


def learn_heads(exchanges: Iterable[Exchange], redactor: Redactor) -> None:
    """Let the redactor see the credentials in headers and URLs."""
    for exchange in exchanges:
        redactor.learn(exchange.request.headers.pairs(), exchange.request.url)
        if exchange.response is not None:
            redactor.learn(exchange.response.headers.pairs(), "")


def _text(path: Path) -> str:
    try:
        return readable_text(path)[0].decode(errors="replace")
    except TapeError:  # only its journal is there
        return ""


def cut_tape(tape: Tape, out: Path, keep: Callable[[Exchange], bool], redactor: Redactor) -> Edited:
    """Write some exchanges of a tape as a new one. They keep their numbers and times; `parent` names the whole."""
    kept = [exchange for exchange in tape.exchanges if keep(exchange)]
    if not kept:
        raise UsageError(f"{tape.path}: none of its {len(tape.exchanges)} exchanges is asked for; nothing was written")
    numbers = {exchange.number for exchange in kept}
    gaps = [gap for gap in gaps_of(tape) if not gap.exchanges or numbers & set(gap.exchanges)]
    header = tape.header.model_copy(update={"parent": tape.path.name if tape.path else None})
    if tape.path is not None:
        redactor.resume(_text(tape.path))
    return _write(out, header, kept, gaps, redactor, tape.warnings)


def merge_tapes(tapes: Sequence[Tape], out: Path, recorder: str, redactor: Redactor) -> Edited:
    """Write several tapes as one, with the exchanges in order of their start times and renumbered.

    An exchange that several tapes have is kept once.
    """
    unique: dict[str, tuple[int, Exchange]] = {}
    for which, tape in enumerate(tapes):
        for exchange, identity in zip(tape.exchanges, identities(tape), strict=True):
            unique.setdefault(identity, (which, exchange))
    edited = write_merged(tapes, list(unique.values()), merged_header(tapes, recorder), out, redactor)
    return replace(edited, shared=sum(len(tape.exchanges) for tape in tapes) - len(unique))


def write_merged(
    tapes: Sequence[Tape], kept: Sequence[tuple[int, Exchange]], header: Header, out: Path, redactor: Redactor
) -> Edited:
    """Write exchanges of several tapes, each with the index of its tape, as one tape."""
    started = clock(header.started)
    shifts = [clock(tape.header.started) - started for tape in tapes]
    placed = [(exchange.at + shifts[which], which, moved(exchange, shifts[which])) for which, exchange in kept]
    placed.sort(key=lambda entry: (entry[0], entry[1], entry[2].number))
    numbers = {(which, exchange.number): i for i, (_, which, exchange) in enumerate(placed, 1)}
    exchanges = [replace(exchange, number=numbers[which, exchange.number]) for _, which, exchange in placed]
    gaps: dict[Gap, None] = {}
    for which, tape in enumerate(tapes):
        redactor.resume(_text(tape.path) if tape.path else "")
        for gap in gaps_of(tape):
            there = tuple(numbers[which, n] for n in gap.exchanges if (which, n) in numbers)
            if gap.exchanges and not there:
                continue  # its exchanges are kept as another tape has them
            gaps[replace(gap, at=gap.at + shifts[which], exchanges=there)] = None
    warnings = [warning for tape in tapes for warning in tape.warnings]
    return _write(out, header, exchanges, gaps, redactor, warnings)


def merged_header(tapes: Sequence[Tape], recorder: str) -> Header:
    headers = [tape.header for tape in tapes]
    names = ", ".join(tape.path.name for tape in tapes if tape.path)
    return Header(
        wiretape=VERSION,
        parent=None,
        started=min(header.started for header in headers),
        recorder=recorder,
        note="; ".join(dict.fromkeys([f"merged from {names}", *(h.note for h in headers if h.note)])),
        provenance="; ".join(dict.fromkeys(h.provenance for h in headers if h.provenance)) or None,
        redacted=sorted({kind for header in headers for kind in header.redacted}),
        bypassed=sorted({host for header in headers for host in header.bypassed or ()}) or None,
        client=united(tape.header.client or versions_of(tape.exchanges) for tape in tapes),
    )


def moved(exchange: Exchange, by: int) -> Exchange:
    """The same exchange, so many milliseconds later."""
    response: Response | None = exchange.response
    if response is not None:
        response = replace(response, headers_at=response.headers_at + by)
    return replace(
        exchange,
        at=exchange.at + by,
        response=response,
        ended_at=None if exchange.ended_at is None else exchange.ended_at + by,
        messages=tuple(replace(message, at=message.at + by) for message in exchange.messages),
    )


def gaps_of(tape: Tape) -> list[Gap]:
    """What the tape lacks, by its own account."""
    if not tape.incomplete or tape.path is None or not tape.path.exists():
        return []
    found = []
    pieces = split_text(readable_text(tape.path)[0], tape.path).pieces
    for value in (piece.value for piece in pieces if isinstance(piece.value, dict) and "incomplete" in piece.value):
        with suppress(ValueError):  # damage, which the reader has reported
            if isinstance(document := parse_document(value), IncompleteDocument):
                found.append(Gap(document.at, document.incomplete.reason, tuple(document.incomplete.exchanges)))
    return found


def same_file(a: Path, b: Path) -> bool:
    return a == b or (a.exists() and b.exists() and a.samefile(b))


def _write(
    out: Path,
    header: Header,
    exchanges: Iterable[Exchange],
    gaps: Iterable[Gap],
    redactor: Redactor,
    warnings: Sequence[str],
) -> Edited:
    """Write a tape in one go, its documents in the order of happening. `out` is replaced at the end, or not at all."""
    documents: list[bytes] = []
    writer = TapeWriter(documents.append, redactor)
    exchanges = list(exchanges)
    learn_heads(exchanges, redactor)
    exchanges = [with_whole_messages(exchange, redactor) for exchange in exchanges]
    steps: list[tuple[int, Callable[[], object]]] = [step for e in exchanges for step in writer.steps(e)]
    for gap in gaps:
        steps.append((gap.at, lambda gap=gap: writer.incomplete(gap.at, gap.reason, gap.exchanges)))  # type: ignore[misc]
    for _, write in sorted(steps, key=lambda step: step[0]):
        write()
    update: dict[str, object] = {"redacted": sorted({*header.redacted, *redactor.kinds})}
    for name in ("note", "provenance"):
        if text := getattr(header, name):
            update[name] = redactor.text(text)
    if header.client:
        update["client"] = redactor.value(header.client)
    replace_tape(out, [document_text(header_document(header.model_copy(update=update))), *documents])
    return Edited(len(exchanges), redactor.counts, tuple(warnings))


def with_whole_messages(exchange: Exchange, redactor: Redactor) -> Exchange:
    """The exchange without secrets that are split over several messages of its WebSocket."""
    texts = [
        i
        for i, message in enumerate(exchange.messages)
        if message.sender == "server" and isinstance(message.body, JsonBody | TextBody)
    ]
    made, rewritten = redactor.frames([body_bytes(exchange.messages[i].body) for i in texts])
    if not rewritten:
        return exchange
    messages = list(exchange.messages)
    for which in rewritten:
        i = texts[which]
        messages[i] = replace(messages[i], body=_read_again(messages[i].body, made[which]))
    return replace(exchange, messages=tuple(messages))


def _read_again(body: Body, data: bytes) -> Body:
    """The body that these bytes are, which were one like `body`."""
    return replace(body, value=orjson.loads(data)) if isinstance(body, JsonBody) else TextBody(data.decode())
