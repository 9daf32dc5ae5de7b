from __future__ import annotations

import random

from wiretape.tape.journal.redaction_cache import RecentBodies, common_suffix

VERSION = object()


class Searching:
    """Stands for the redactor: notes what it was given, and replaces the secret."""

    def __init__(self) -> None:
        self.bytes = 0

    def __call__(self, data: bytes) -> bytes:
        self.bytes += len(data)
        return data.replace(b"SECRET", b"[redacted]") if b"SECRET" in data else data


def send(repeats: RecentBodies, body: bytes, search: Searching, size: int = 65_536, version: object = VERSION) -> bytes:
    searched = repeats.begin(version)
    sent = b"".join(searched.clean(body[at : at + size], search) for at in range(0, len(body), size))
    searched.done()
    return sent


def body(steps: int, tail: bytes = b"") -> bytes:
    messages = b",".join(b'{"role":"user","content":"%b"}' % (b"step %d " % n * 60) for n in range(steps))
    tools = b",".join(b'{"type":"function","name":"tool_%d","text":"%b"}' % (n, b"y" * 300) for n in range(30))
    return b'{"messages":[' + messages + tail + b'],"tools":[' + tools + b"]}"


def test_what_an_earlier_request_had_is_not_searched_again() -> None:
    repeats, search = RecentBodies(), Searching()
    for steps in range(1, 60):
        assert send(repeats, body(steps), search) == body(steps)
    assert search.bytes < 100_000  # 59 requests of up to 40 kB


def test_chunks_may_come_in_any_size() -> None:
    repeats, search = RecentBodies(), Searching()
    source = random.Random(3)
    for steps in range(1, 60):
        assert send(repeats, body(steps), search, source.randint(1000, 9000)) == body(steps)
    assert search.bytes < sum(len(body(steps)) for steps in range(1, 60)) / 2


def test_a_secret_in_what_is_new_is_found() -> None:
    repeats, search = RecentBodies(), Searching()
    send(repeats, body(20), search)
    assert b"SECRET" not in send(repeats, body(20, b',{"role":"user","content":"SECRET"}'), search)
    assert b"SECRET" not in send(repeats, body(20).replace(b"step 3 ", b"SECRET "), search)
    assert b"SECRET" not in send(repeats, body(20)[:-4] + b"SECRET", search)


def test_a_secret_that_begins_in_the_common_part_is_found() -> None:
    repeats, search = RecentBodies(), Searching()
    start = body(20)[:-700]
    send(repeats, start + b"SECxxx" + b"z" * 600, search)
    assert b"SECRET" not in send(repeats, start + b"SECRET" + b"z" * 600, search)


def test_a_body_in_which_something_was_found_is_no_measure() -> None:
    repeats, search = RecentBodies(), Searching()
    for _ in range(3):
        assert b"SECRET" not in send(repeats, body(20, b',{"x":"SECRET"}'), search)
    assert repeats.texts == []


def test_when_more_is_searched_for_nothing_counts_as_searched() -> None:
    repeats, search = RecentBodies(), Searching()
    send(repeats, body(20), search)
    before = search.bytes
    send(repeats, body(20), search, version=object())
    assert search.bytes - before == len(body(20))


def test_common_suffix() -> None:
    assert common_suffix(b"abcd", b"xbcd") == 3
    assert common_suffix(b"abcd", b"abcd") == 4
    assert common_suffix(b"", b"a") == 0
    assert common_suffix(b"a", b"b") == 0
