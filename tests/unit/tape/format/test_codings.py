from __future__ import annotations

import gzip
import random
import sys
import zlib
from collections.abc import Callable

import pytest

from wiretape.tape.format.codings import (
    MOST_DECODED,
    CodingError,
    decoder_for,
    kept_encoded,
    steps,
    swells,
    zstd_library,
)

DATA = bytes(random.Random(1).randbytes(2000)) + b"so it goes " * 500


def brotli(data: bytes) -> bytes:
    module = pytest.importorskip("brotli", reason="needs the library brotli")
    compressed: bytes = module.compress(data)
    return compressed


def zstd(data: bytes) -> bytes:
    library = zstd_library()
    if library is None:
        pytest.skip("needs the extra zstd")
    compressed: bytes = library.compress(data)
    return compressed


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli,
    "zstd": zstd,
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("size", [1, 13, 100_000])
def test_bodies_are_decoded_as_they_come(name: str, size: int) -> None:
    encoded = ENCODERS[name](DATA)
    decoder = decoder_for(name.upper())
    assert decoder is not None
    assert b"".join(decoder.feed(encoded[at : at + size]) for at in range(0, len(encoded), size)) == DATA


@pytest.mark.parametrize("name", ENCODERS)
def test_a_body_cut_short_keeps_what_decodes(name: str) -> None:
    encoded = ENCODERS[name](DATA * 50)
    decoder = decoder_for(name)
    assert decoder is not None
    kept = decoder.feed(encoded[: len(encoded) * 3 // 4])
    assert (DATA * 50).startswith(kept)
    if name != "zstd":  # which decodes whole blocks only
        assert kept


@pytest.mark.parametrize("name", ENCODERS)
def test_bytes_that_are_not_so_encoded_are_an_error(name: str) -> None:
    ENCODERS[name](b"")
    decoder = decoder_for(name)
    assert decoder is not None
    with pytest.raises(CodingError):
        decoder.feed(b'{"plain": "text that no encoder makes"}')


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_several_members_are_one_body(name: str) -> None:
    decoder = decoder_for(name)
    encoded = ENCODERS[name](b"one ") + ENCODERS[name](b"two")
    assert decoder is not None
    assert decoder.feed(encoded) == b"one two"


@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd"])
def test_a_limit_leaves_the_rest_for_later(name: str) -> None:
    encoded = ENCODERS[name](b"0" * 1_000_000)
    decoder = decoder_for(name)
    assert decoder is not None
    first = decoder.feed(encoded, 1000)
    assert 1000 <= len(first) < 200_000
    assert first + decoder.feed(b"") == b"0" * 1_000_000


def test_what_nobody_can_undo_is_left() -> None:
    assert decoder_for("compress") is None
    assert decoder_for("gzip, compress") is None
    assert decoder_for("identity") is None
    assert decoder_for("") is None


def test_a_missing_library_leaves_the_body_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("brotli", "backports", "compression"):
        monkeypatch.setitem(sys.modules, name, None)
    assert decoder_for("br") is None
    assert decoder_for("zstd") is None


@pytest.mark.parametrize("name", ENCODERS)
def test_decoding_in_steps_gives_the_same_and_never_much_at_a_time(name: str) -> None:
    data = DATA * 10 + bytes(20 << 20) + DATA
    encoded = ENCODERS[name](data)
    decoder = decoder_for(name)
    assert decoder is not None
    pieces = list(steps(decoder, encoded))
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= (4 << 20 if name != "br" else 17 << 20)  # brotli writes 16 MB blocks at most


def test_only_what_is_large_and_grew_out_of_proportion_swells() -> None:
    assert swells(MOST_DECODED + 1, MOST_DECODED // 200)
    assert not swells(MOST_DECODED, 1)
    assert not swells(MOST_DECODED + 1, MOST_DECODED // 200 + 1)


def test_what_is_still_encoded_is_told_from_what_was_decoded() -> None:
    bomb = gzip.compress(bytes(MOST_DECODED + (1 << 20)), 9)
    assert kept_encoded("gzip", bomb)
    assert kept_encoded("x-unheard-of", b"anything")
    assert not kept_encoded("gzip", gzip.compress(DATA))  # an archive, of which only the sending was undone
    assert not kept_encoded("gzip", DATA)
    assert not kept_encoded("identity", b"anything")
