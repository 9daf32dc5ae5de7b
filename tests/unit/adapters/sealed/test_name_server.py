"""Lookups of a sealed program: each name has an address of its own, and nothing else is known."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import pytest

from wiretape.adapters.sealed import name_server
from wiretape.adapters.sealed.name_server import NameServer, search_domains, serve_lookups

OPENAI = b"\x03api\x06openai\x03com\x00"
ASKED = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"  # number, recursion wanted, one question


def query(name: bytes, kind: int, of: int = 1, head: bytes = ASKED) -> bytes:
    return head + name + kind.to_bytes(2) + of.to_bytes(2)


def test_a_name_gets_an_address_that_tells_the_name() -> None:
    names = NameServer()
    assert names.answer(query(OPENAI, 1)) == (
        b"\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00"  # no error, one question, one answer
        + (OPENAI + b"\x00\x01\x00\x01")
        + (b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04" + bytes((198, 18, 0, 1)))
    )
    assert names.names_of("198.18.0.1") == ["api.openai.com"]
    assert names.names_of("198.18.0.2") == []


def test_the_same_name_keeps_its_address_however_it_is_spelled() -> None:
    names = NameServer()
    addresses = [names.address_of(name) for name in ("a.example", "b.example", "A.Example.", "b.EXAMPLE")]
    assert addresses == ["198.18.0.1", "198.18.0.2", "198.18.0.1", "198.18.0.2"]
    assert names.looked_up == ["a.example", "b.example"]


@pytest.mark.parametrize("name", ["localhost", "app.localhost", "This-Machine"])
def test_names_of_this_machine_lead_to_loopback_and_are_no_lookups(name: str) -> None:
    names = NameServer(["this-machine"])
    assert (names.address_of(name), names.looked_up) == ("127.0.0.1", [])


@pytest.mark.parametrize("kind", [28, 15, 16, 33, 65])
def test_a_name_has_nothing_but_an_address_of_ipv4(kind: int) -> None:
    answer = NameServer().answer(query(OPENAI, kind))
    assert answer is not None
    assert (answer[3] & 0xF, answer[6:8], len(answer)) == (0, b"\0\0", len(query(OPENAI, kind)))


def test_an_address_has_no_name() -> None:
    answer = NameServer().answer(query(b"\x011\x010\x010\x03127\x07in-addr\x04arpa\x00", 12))
    assert answer is not None
    assert (answer[3] & 0xF, answer[6:8]) == (3, b"\0\0")


@pytest.mark.parametrize("end", range(12, 12 + len(OPENAI) + 4))
def test_a_query_that_is_cut_short_is_told_so(end: int) -> None:
    names = NameServer()
    assert names.answer(query(OPENAI, 1)[:end]) == b"\x12\x34\x81\x81" + bytes(8)
    assert names.looked_up == []


def test_what_is_no_query_gets_no_answer() -> None:
    for other in (b"", ASKED[:11], query(OPENAI, 1, head=b"\x12\x34\x81\x80" + ASKED[4:])):
        assert NameServer().answer(other) is None


def test_anything_but_a_query_is_not_implemented() -> None:
    update = NameServer().answer(query(OPENAI, 6, head=b"\x12\x34\x28\x00" + ASKED[4:]))
    assert update == b"\x12\x34\xa8\x84" + bytes(8)


def test_more_names_than_addresses_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_server, "_POOL", ipaddress.ip_network("198.18.0.0/30"))
    names = NameServer()
    assert [names.address_of(name) for name in "abca"] == ["198.18.0.1", "198.18.0.2", "198.18.0.1", "198.18.0.1"]
    assert names.names_of("198.18.0.1") == ["a"]


def test_a_domain_that_a_resolver_puts_behind_a_name_may_not_be_meant() -> None:
    names = NameServer(search=["default.svc.cluster.local", "cluster.local"])
    address = names.address_of("api.openai.com.default.svc.cluster.local")
    assert names.names_of(address) == [
        "api.openai.com.default.svc.cluster.local",
        "api.openai.com",
        "api.openai.com.default.svc",
    ]
    assert names.names_of(names.address_of("api.openai.com")) == ["api.openai.com"]


@pytest.mark.parametrize(
    ("resolver", "domains"),
    [
        ("nameserver 10.0.0.1\nsearch Corp.Example. example\noptions ndots:5\n", ("corp.example", "example")),
        ("search one\ndomain two\n", ("two",)),  # the last of them counts
        ("# search none\n\nnameserver 10.0.0.1", ()),
        ("search\n", ()),
    ],
)
def test_search_domains_stand_in_the_resolver_s_configuration(resolver: str, domains: tuple[str, ...]) -> None:
    assert search_domains(resolver) == domains


def test_a_loop_that_comes_by_once_answers_all_that_wait() -> None:
    """Resolvers give up after five seconds, and a loop that serves hundreds of connections is a while on its way."""
    numbers = [number.to_bytes(2) for number in range(50)]

    async def turned() -> None:
        serve_lookups(NameServer(), hearing)
        for _ in range(3):
            await asyncio.sleep(0)
        asyncio.get_running_loop().remove_reader(hearing)

    with socket.socket(type=socket.SOCK_DGRAM) as hearing, socket.socket(type=socket.SOCK_DGRAM) as asking:
        hearing.bind(("127.0.0.1", 0))
        asking.connect(hearing.getsockname())
        asking.settimeout(30)
        for number in numbers:
            asking.send(query(OPENAI, 1, head=number + ASKED[2:]))
        asyncio.run(turned())
        assert [asking.recv(512)[:2] for _ in numbers] == numbers
