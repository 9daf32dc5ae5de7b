"""Whom a client of TLS means to speak to, read off its first message: whole, cut short, and without a name."""

from __future__ import annotations

import ssl

import pytest

from wiretape.adapters.sealed.client_hello import missing, server_name


def hello(name: str | None) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    sent = ssl.MemoryBIO()
    talking = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        talking.do_handshake()
    return sent.read()


def test_the_name_is_that_of_the_server() -> None:
    assert server_name(hello("api.openai.com")) == "api.openai.com"


def test_what_comes_behind_the_record_does_not_count() -> None:
    assert server_name(hello("api.openai.com") + b"\x17\x03\x03more") == "api.openai.com"


@pytest.mark.parametrize("name", [None, "192.0.2.1"])
def test_a_client_that_speaks_to_an_address_gives_none(name: str | None) -> None:
    assert server_name(hello(name)) is None


def test_a_record_that_is_cut_short_has_no_name_and_says_how_much_is_missing() -> None:
    record = hello("api.openai.com")
    for end in range(len(record)):
        assert server_name(record[:end]) is None
        assert missing(record[:end]) == (5 - end if end < 5 else len(record) - end)
    assert missing(record) == 0


@pytest.mark.parametrize("other", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", bytes(600)])
def test_what_is_no_client_hello_has_none(other: bytes) -> None:
    assert server_name(other) is None
