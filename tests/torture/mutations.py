"""Mutated tapes go through every command that reads one: no internal error, no hang, no traceback.

Each mutated tape is read by one command, in this process, as the `wiretape` command runs it. Over the campaign each
mutator meets each command. Two worker processes share the work.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fuzz import mutate
from tests.support.generated_tapes import generated
from tests.torture import campaign

ROOT = Path(__file__).parent.parent.parent
GENERATED = 100
MOST_CPU = 10.0  # seconds that a command may take
BATCH = 50  # mutated tapes of one task
INTERNAL = 70
OUT = "OUT"  # stands for a directory to write to
TAPE = "TAPE"
COMMANDS: tuple[str, ...] = (
    *("show TAPE", "show TAPE --json", "show TAPE 1", "show TAPE 2 --full", "show TAPE 1 --json", "show TAPE x1 --raw"),
    *("stats TAPE", "stats TAPE --json", "stats TAPE --by tape", "lint TAPE", "lint TAPE --json --partial"),
    *("cache TAPE", "cache TAPE --call 2", "tools TAPE", "diff TAPE TAPE", "diff ORIGINAL TAPE --partial --all"),
    *("check TAPE --max-calls 3 --max-cost 1 --no-lint-errors --partial", "check ORIGINAL --baseline TAPE"),
    "debug TAPE --batch break_2;continue;print_usage;next;step;back;context;list;goto_1;stream;diff",
    *("export TAPE -o OUT/a.har --force --partial", "redact TAPE -o OUT/r.tape --force --partial", "redact TAPE"),
    *("cut TAPE --from 0 -o OUT/c.tape --force --partial", "merge TAPE ORIGINAL -o OUT/m.tape --force --partial"),
    *("ls TAPE", "ls TAPE --json", "doctor TAPE", "stats TAPE --partial", "show TAPE --full", "cache TAPE --json"),
    *("tools TAPE --json --partial", "rerun TAPE --partial", "fork TAPE 1 --say x -o OUT/f.tape --force --partial"),
)


class Hang(BaseException):
    """A command used more CPU time than it may."""


# -- mutators ----------------------------------------------------------------------------------------------------

Mutator = Callable[[random.Random, bytes], bytes]


def _documents(text: bytes) -> list[bytes]:
    return [part.strip() for part in text.split(b"\n\n") if part.strip()]


def _joined(documents: Sequence[bytes]) -> bytes:
    return b"\n\n".join(documents) + b"\n"


def _values(text: bytes) -> list[Any]:
    return [json.loads(document) for document in _documents(text)]


def _pretty(values: Sequence[Any]) -> bytes:
    texts = (json.dumps(value, indent=2, ensure_ascii=False) for value in values)
    return _joined([text.encode("utf-8", "surrogatepass") for text in texts])


def flip_bits(source: random.Random, text: bytes) -> bytes:
    made = bytearray(text)
    for _ in range(source.choice((1, 1, 3, 20))):
        made[source.randrange(len(made))] ^= 1 << source.randrange(8)
    return bytes(made)


def change_bytes(source: random.Random, text: bytes) -> bytes:
    return mutate.data(source, text, text)


def truncate(source: random.Random, text: bytes) -> bytes:
    return text[: source.randrange(len(text))]


def zero_tail(source: random.Random, text: bytes) -> bytes:
    """The end of the file as a crash of the machine may leave it."""
    at = source.randrange(len(text))
    return text[:at] + b"\0" * (len(text) - at)


def remove_document(source: random.Random, text: bytes) -> bytes:
    documents = _documents(text)
    del documents[source.randrange(len(documents))]
    return _joined(documents)


def repeat_document(source: random.Random, text: bytes) -> bytes:
    documents = _documents(text)
    documents.insert(source.randrange(len(documents) + 1), source.choice(documents))
    return _joined(documents)


def swap_documents(source: random.Random, text: bytes) -> bytes:
    documents = _documents(text)
    a, b = source.randrange(len(documents)), source.randrange(len(documents))
    documents[a], documents[b] = documents[b], documents[a]
    return _joined(documents)


NUMBERS = ("0", "-1", "1e308", "1e999", "-0", "2147483648", "9223372036854775808", "18446744073709551616", "9" * 400)
MORE_NUMBERS = ("9" * 5000, "10000000000000", "-9999999999999", "0.1", "999999999999999", "NaN", "-Infinity", "1" * 20)


def blow_up_number(source: random.Random, text: bytes) -> bytes:
    """A number of the tape's text becomes a strange one: also inside times and embedded JSON."""
    places = list(_numbers(text))
    if not places:
        return text
    start, end = source.choice(places)
    return text[:start] + source.choice(NUMBERS + MORE_NUMBERS).encode() + text[end:]


def _numbers(text: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(text):
        if text[at : at + 1].isdigit():
            end = at
            while text[end : end + 1].isdigit():
                end += 1
            yield at, end
            at = end
        at += 1


def nest(source: random.Random, text: bytes) -> bytes:
    """A value of a document, or a text in it, becomes a deeply nested one."""
    depth = source.choice((100, 250, 254, 300, 900, 1020, 5000))
    opening, closing = source.choice(((b"[", b"]"), (b'{"a":', b"}")))
    deep = opening * depth + b"1" + closing * depth
    if source.random() < 0.3:
        deep = json.dumps(deep.decode()).encode()  # as arguments of a tool, say
    colons = [at for at in range(len(text)) if text[at : at + 2] == b": "]
    at = source.choice(colons) + 2
    end = text.find(b"\n", at)
    comma = b"," if text[end - 1 : end] == b"," else b""
    return text[:at] + deep + comma + text[end:]


def change_value(source: random.Random, text: bytes) -> bytes:
    """A member of a document gets another type, another name, or a strange value."""
    values = _values(text)
    at = source.randrange(len(values))
    values[at] = mutate.value(source, values[at])
    return _pretty(values)


def change_body(source: random.Random, text: bytes) -> bytes:
    """Changes a body, and keeps the rest."""
    values = _values(text)
    parts = [part for value in values for part in _parts(value)]
    if not parts:
        return change_value(source, text)
    part = source.choice(parts)
    part["body"] = mutate.value(source, part["body"])
    return _pretty(values)


def change_events(source: random.Random, text: bytes) -> bytes:
    """The events of a stream, as text: lost, repeated, moved, with other data."""
    values = _values(text)
    bodies = [part["body"] for value in values for part in _parts(value) if "events" in part["body"]]
    if not bodies:
        return change_body(source, text)
    body = source.choice(bodies)
    frames = mutate.events(source, [event.encode("utf-8", "surrogatepass") for event in body["events"]])
    body["events"] = [frame.decode("utf-8", "replace") for frame in frames]
    body["ms"] = " ".join("5" for _ in frames)
    return _pretty(values)


def change_text_body(source: random.Random, text: bytes) -> bytes:
    """A body becomes a text that holds strange JSON."""
    values = _values(text)
    parts = [part for value in values for part in _parts(value)]
    if not parts:
        return change_value(source, text)
    part = source.choice(parts)
    held = part["body"].get("json", {"choices": [{"message": {"content": "x"}}], "usage": {"input_tokens": 1}})
    changed = json.dumps(mutate.value(source, held))
    part["body"] = {"text": changed.replace("1", source.choice(NUMBERS), 3) if source.random() < 0.3 else changed}
    return _pretty(values)


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    for name in ("request", "response", "message"):
        part = value.get(name) if isinstance(value, dict) else None
        if isinstance(part, dict) and isinstance(part.get("body"), dict):
            yield part


def remove_key(source: random.Random, text: bytes) -> bytes:
    values = _values(text)
    holders = [holder for value in values for holder in _objects(value)]
    holder = source.choice(holders)
    if holder:
        del holder[source.choice(list(holder))]
    return _pretty(values)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from _objects(member)
    elif isinstance(value, list):
        for member in value:
            yield from _objects(member)


def conflict_markers(source: random.Random, text: bytes) -> bytes:
    """What git leaves when two branches changed the same lines."""
    lines = text.split(b"\n")
    for _ in range(source.choice((1, 1, 2))):
        a = source.randrange(len(lines))
        b = min(len(lines), a + source.randrange(1, 30))
        theirs = [flip_bits(source, line) if line and source.random() < 0.3 else line for line in lines[a:b]]
        base = [b"||||||| 1a2b3c4", *lines[a:b]] if source.random() < 0.3 else []
        lines[a:b] = [b"<<<<<<< HEAD", *lines[a:b], *base, b"=======", *theirs, b">>>>>>> other"]
    return b"\n".join(lines)


def line_ends(source: random.Random, text: bytes) -> bytes:
    return text.replace(b"\n", source.choice((b"\r\n", b"\r", b"\n\n", b"", b"\n \n")))


def invalid_utf8(source: random.Random, text: bytes) -> bytes:
    at = source.randrange(len(text))
    return text[:at] + source.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xfe\xff")) + text[at:]


def lone_surrogate(source: random.Random, text: bytes) -> bytes:
    quotes = [at for at in range(len(text)) if text[at : at + 1] == b'"']
    at = source.choice(quotes) + 1
    return text[:at] + source.choice((b"\\ud800", b"\\udfff", b"\\ud83d", b"\\u0000", b"\\u202e")) + text[at:]


def other_encoding(source: random.Random, text: bytes) -> bytes:
    return text.decode("utf-8", "replace").encode(source.choice(("utf-16", "utf-8-sig", "utf-32", "utf-7")))


def splice(source: random.Random, text: bytes) -> bytes:
    """Documents of another place of the tape, or the whole tape twice."""
    documents = _documents(text)
    at = source.randrange(len(documents))
    return _joined([*documents[:at], *documents[source.randrange(len(documents)) :]])


def compress(source: random.Random, text: bytes) -> bytes:
    """A compressed tape, damaged."""
    from backports import zstd

    data = zstd.compress(text)
    return source.choice((flip_bits, truncate, change_bytes))(source, data) if source.random() < 0.9 else data


MUTATORS: dict[str, Mutator] = {
    mutator.__name__: mutator
    for mutator in (
        *(flip_bits, change_bytes, truncate, zero_tail, remove_document, repeat_document, swap_documents),
        *(blow_up_number, nest, change_value, change_body, change_events, change_text_body, remove_key),
        *(conflict_markers, line_ends, invalid_utf8, lone_surrogate, other_encoding, splice, compress),
    )
}
DAMAGES_BYTES = (flip_bits, change_bytes, truncate, zero_tail, blow_up_number, invalid_utf8)


# -- running -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seed:
    """A good tape, with its journal if it has one."""

    name: str
    text: bytes
    journal: bytes = b""


def seeds(seed: int) -> list[Seed]:
    """The tapes of the repository, and generated ones."""
    paths = [*sorted((ROOT / "captures").glob("*.tape")), *sorted((ROOT / "tests" / "tapes").rglob("*.tape"))]
    found = [Seed(path.stem, path.read_bytes()) for path in paths]
    return found + [Seed(name, text, journal) for name, text, journal in generated(seed, GENERATED)]


def mutated(seed: Seed, mutator: str, source: random.Random) -> tuple[bytes, bytes]:
    """The tape and its journal, changed."""
    text, journal = seed.text, seed.journal
    if journal and source.random() < 0.5:
        return text, source.choice(DAMAGES_BYTES)(source, journal)
    for _ in range(5):
        try:
            made = MUTATORS[mutator](source, text)
        except (ValueError, IndexError, TypeError, RecursionError):  # the tape has no place for this
            continue
        if source.random() < 0.15 and made:
            made = flip_bits(source, made)
        return made, journal
    return change_bytes(source, text), journal


@dataclass(slots=True)
class Outcome:
    """What a batch of mutated tapes gave."""

    tried: Counter[str]
    failures: list[str]


_SEEDS: list[Seed] = []


def run_batch(task: tuple[int, int, int]) -> Outcome:
    """Mutate tapes `first` to `last` of a campaign and read them."""
    campaign_seed, first, last = task
    outcome = Outcome(Counter(), [])
    names = list(MUTATORS)
    with tempfile.TemporaryDirectory(prefix="wiretape-mutations-") as directory:
        for number in range(first, last):
            source = random.Random(f"{campaign_seed} {number}")
            seed, mutator = source.choice(_SEEDS), names[number % len(names)]
            text, journal = mutated(seed, mutator, source)
            suffix = ".tape.zst" if mutator == "compress" else ".tape"
            path = Path(directory, f"{number}{suffix}")
            original = Path(directory, "original.tape")
            original.write_bytes(seed.text)
            path.write_bytes(text)
            if journal:
                path.with_name(path.name + ".journal").write_bytes(journal)
            words = COMMANDS[number // len(names) % len(COMMANDS)]  # each mutator meets each command
            problem = read_by(argv_of(words, path, original, Path(directory)))
            if problem is not None:
                outcome.failures.append(f"tape {number} ({seed.name}, {mutator}): wiretape {words}: {problem}")
            outcome.tried["mutated tapes"] += 1
            outcome.tried[f"by {mutator}"] += 1
            for left in Path(directory).iterdir():
                left.unlink()
    return outcome


def argv_of(words: str, tape: Path, original: Path, out: Path) -> list[str]:
    named = {TAPE: str(tape), "ORIGINAL": str(original)}
    return [named.get(word, word.replace(OUT, str(out)).replace("_", " ").replace(";", "; ")) for word in words.split()]


def read_by(argv: Sequence[str]) -> str | None:
    """Run one command in this process. Return the fault in how the process ended, or None."""
    from wiretape.cli.main import main

    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    started = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code: object = main(list(argv))
    except Hang:
        return f"used more than {MOST_CPU:.0f} s of CPU time"
    except BaseException as error:
        return f"raised {type(error).__name__}: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    said = _text(err)
    if code not in (0, 1, 2, 3) or "Traceback" in said or "internal error" in said:
        return f"exit code {code}: {said[-300:].strip()}"
    if (used := time.process_time() - started) > MOST_CPU:
        return f"used {used:.0f} s of CPU time"
    return None


def _text(stream: io.TextIOWrapper) -> str:
    with contextlib.suppress(ValueError):
        stream.flush()
    buffer = stream.buffer
    return buffer.getvalue().decode("utf-8", "replace") if isinstance(buffer, io.BytesIO) else ""


def _prepare(good: list[Seed]) -> None:
    """Set a worker process up."""

    def hang(_: int, __: FrameType | None) -> None:
        raise Hang

    signal.signal(signal.SIGVTALRM, hang)
    os.environ.pop("WIRETAPE_DEBUG", None)
    _SEEDS[:] = good


def main(argv: list[str]) -> int:
    mutations = campaign.start("mutations", argv, count=2_000)
    tasks = [(mutations.seed, first, min(first + BATCH, mutations.count)) for first in range(0, mutations.count, BATCH)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, _prepare, (seeds(mutations.seed),), maxtasksperchild=40) as pool:
        for outcome in pool.imap_unordered(run_batch, tasks):
            mutations.tried += outcome.tried
            for failure in outcome.failures:
                mutations.fail(failure)
    return mutations.finish()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
