"""The server name in the first bytes of a TLS client: whole, in pieces, and without a name."""

from __future__ import annotations

import ssl

import pytest

from wiretape.adapters.sealed.transparent_proxy import ServerNameReader


def hello(name: str | None) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    sent = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


@pytest.mark.parametrize("size", [1, 5, 100, 10_000])
def test_the_name_is_read_however_the_bytes_are_cut(size: int) -> None:
    data, reader = hello("API.openai.com"), ServerNameReader()
    more = [reader.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert more == [True] * (len(more) - 1) + [False]
    assert reader.name == "api.openai.com"


def test_bytes_behind_the_hello_are_ignored() -> None:
    reader = ServerNameReader()
    assert not reader.feed(hello("api.openai.com") + b"\x17\x03\x03more")
    assert reader.name == "api.openai.com"


@pytest.mark.parametrize("name", [None, "192.0.2.1"])
def test_a_client_that_connects_to_an_address_gives_no_name(name: str | None) -> None:
    reader = ServerNameReader()
    assert not reader.feed(hello(name))
    assert reader.name is None


@pytest.mark.parametrize("other", [b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", b"\x16" + bytes(600)])
def test_bytes_that_are_not_a_hello_give_no_name(other: bytes) -> None:
    reader = ServerNameReader()
    assert not reader.feed(other)
    assert reader.name is None
