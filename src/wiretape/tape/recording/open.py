"""Open a tape for recording: a new one, or one to be continued, with the journal that an earlier recorder left."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import orjson

from wiretape.errors import NotATape, TapeError, TapeUnwritable
from wiretape.model.http import Ended
from wiretape.tape.atomic import private
from wiretape.tape.damage import refuse
from wiretape.tape.format.documents import Header
from wiretape.tape.journal.journal import Journal, Leftover, read_journal
from wiretape.tape.journal.recovery import recovered
from wiretape.tape.reading.reader import ExchangeBuilder, parse_header
from wiretape.tape.reading.splitting import TapeDocument, split_documents
from wiretape.tape.redaction import Redactor
from wiretape.tape.storage import TapeFile, is_compressed, journal_path, read_text
from wiretape.tape.writing.writer import document_text, header_document


@dataclass(slots=True)
class OpenTape:
    """A tape that is open for recording, with its journal."""

    path: Path
    file: TapeFile
    journal: Journal
    header: Header
    last_number: int = 0
    """Of the exchanges that were there before."""
    warnings: list[str] = field(default_factory=list)

    def milliseconds_before(self, now: datetime) -> int:
        """How long ago the tape was started."""
        return max(0, round((now - self.header.started).total_seconds() * 1000))


def open_tape(path: Path, header: Header, redactor: Redactor, append: bool, replace: bool = True) -> OpenTape:
    """Open a tape to continue it (`append`) or to replace it. `replace=False`: only if it has no exchanges yet.

    Raises TapeUnwritable or NotATape; then the file is as it was.
    """
    file = TapeFile(path)
    warnings: list[str] = []
    try:
        left = read_journal(journal_path(path))
        if append and (not file.empty or (left is not None and left.header is not None)):
            header, last_number = _continue(file, left, redactor, warnings)
        else:
            _check_is_tape(file)
            if not replace and recorded_since(path, 0):
                raise TapeUnwritable(f"{path}: another wiretape has recorded it meanwhile; choose another name")
            journal_path(path).unlink(missing_ok=True)  # first: what it holds does not belong to the new tape
            file.replace([document_text(header_document(header))])
            last_number = 0
        journal = Journal(journal_path(path), header_document(header))
    except OSError as error:
        file.give_up()
        raise TapeUnwritable(f"{path}: cannot be written: {error.strerror or error}") from None
    except TapeError:
        file.give_up()
        raise
    return OpenTape(path, file, journal, header, last_number, warnings)


def recorded_since(path: Path, last_number: int) -> int:
    """Count the exchanges with a higher number on the tape and in its journal, as a reader will find them."""
    numbers: set[int] = set()
    with suppress(TapeError):
        pieces, _ = split_documents(read_text(path), path)
        numbers.update(piece.value.get("exchange", 0) for piece in pieces)
    with suppress(OSError):
        left = read_journal(journal_path(path))
        numbers.update(left.drafts if left is not None else ())
    return sum(number > last_number for number in numbers)


def _check_is_tape(file: TapeFile) -> None:
    """A recording replaces an older one, and nothing else: `-o agent.py` is a slip of the fingers."""
    if file.empty:
        return
    start = read_text(file.path)[:4096].lstrip("\ufeff \r\n".encode())
    if not start.startswith(b"{") or b'"wiretape"' not in start:
        raise NotATape(f"{file.path}: exists and is not a tape: wiretape does not overwrite it; choose another name")


def _continue(file: TapeFile, left: Leftover | None, redactor: Redactor, warnings: list[str]) -> tuple[Header, int]:
    """Mend what a crash left: cut a torn last document off, fold the journal in. Returns header and last number."""
    refuse(left.damage if left else ())
    text = b"" if file.empty else read_text(file.path)
    pieces, torn = split_documents(text, file.path) if text.strip() else ([], None)
    raw_header = pieces[0].value if pieces else left.header if left else None
    header = parse_header(raw_header, file.path)
    if torn is not None and left is None:  # a crash leaves a journal, which holds what the torn document would say
        warnings.append(f"{torn}; it was put into {_keep_torn(file.path, text, pieces)}")
    assembly = ExchangeBuilder(file.path)
    for piece in pieces[1:]:
        assembly.add(piece)
    ends = recovered(left, assembly.have) if left else []
    for document in ends:
        assembly.add(TapeDocument(orjson.loads(document), 0))
    ends += _stopped(assembly, left)
    redactor.resume((text + b"".join(ends)).decode("utf-8", "replace"))
    header = _with_notes(header, left)
    last = max((exchange.number for exchange in assembly.exchanges()), default=0)
    _mend(file, text, pieces, torn is not None, header, ends)
    return header, last


def _keep_torn(path: Path, text: bytes, pieces: list[TapeDocument]) -> Path:
    """Save the bytes after the last whole document in a file next to the tape."""
    kept = path.with_name(f"{path.name}.torn")
    with open(kept, "ab", opener=private) as file:
        file.write(text[pieces[-1].end :].lstrip(b"\n") + b"\n")
    return kept


def _stopped(assembly: ExchangeBuilder, left: Leftover | None) -> list[bytes]:
    """Documents that end the exchanges left open by a crash."""
    at = left.last_at if left else 0
    return [
        document_text({"exchange": exchange.number, "at": max(at, exchange.at), "ended": Ended.RECORDER_STOPPED})
        for exchange in assembly.exchanges()
        if exchange.ended is None
    ]


def _with_notes(header: Header, left: Leftover | None) -> Header:
    if left is None:
        return header
    bypassed = [*(header.bypassed or ()), *(host for host in left.bypassed if host not in (header.bypassed or ()))]
    kinds = sorted({*header.redacted, *left.redacted})
    client = left.client or header.client  # it began with what the header said
    return header.model_copy(update={"redacted": kinds, "bypassed": bypassed or None, "client": client})


def _mend(
    file: TapeFile, text: bytes, pieces: list[TapeDocument], torn: bool, header: Header, ends: list[bytes]
) -> None:
    """Bring the file into the state in which documents can be appended. All of it is on the disk then."""
    # The recorder replaces the header when it closes: the header must have the length of its written form.
    changed = not text.startswith(document_text(header_document(header)))
    if changed or torn or is_compressed(file.path) or b"\r" in text:
        kept = [document_text(header_document(header))] + [document_text(piece.value) for piece in pieces[1:]]
        file.replace([b"\n".join([*kept, *ends])])
        return
    missing = b"" if text.endswith(b"\n") else b"\n"
    if missing or ends:
        file.append(missing + b"".join(b"\n" + document for document in ends))
        file.sync()
