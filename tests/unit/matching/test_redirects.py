"""Recorded redirects, unrecorded redirect targets, and links that redaction changed."""

from __future__ import annotations

import pytest
from tests.support.replaying import chat, exchange, live, response, said, session, user

from wiretape.compare.address import address
from wiretape.matching.values import Answer, Miss, Stray
from wiretape.model.http import bracketed, bracketed_url

URL = "https://api.example.com/v1/chat/completions"


def test_an_unrecorded_redirect_target_is_a_miss_that_names_the_redirect_once() -> None:
    away = response({}, 302, location="https://cdn.example.com/blob?sig=abc")
    replay = session(exchange(1, chat(user("hi")), away, url=URL))
    assert isinstance(replay.answer(live(chat(user("hi")), URL)), Answer)
    missed = replay.answer(live(None, "https://cdn.example.com/blob?sig=abc", "GET"))
    assert isinstance(missed, Miss)
    assert missed.message.splitlines()[1] == (
        "  call 1 redirects to https://cdn.example.com/blob, which is not on the tape"
    )
    assert isinstance(replay.answer(live(None, "https://cdn.example.com/blob", "GET")), Stray)  # nobody was sent there


@pytest.mark.parametrize("location", ["../found", "/v1/found", "//api.example.com/v1/found", f"{URL}/../../found"])
def test_a_redirect_on_the_tape_is_followed_and_later_misses_there_do_not_name_it(location: str) -> None:
    moved = response({}, 307, location=location)
    there = exchange(2, chat(user("hi")), "found", url="https://api.example.com/v1/found")
    replay = session(exchange(1, chat(user("hi")), moved, url=URL), there)
    replay.answer(live(chat(user("hi")), URL))
    assert said(replay.answer(live(chat(user("hi")), "https://api.example.com/v1/found"))) == "found"
    again = replay.answer(live(chat(user("hi")), "https://api.example.com/v1/found"))
    assert isinstance(again, Miss)
    assert "redirects" not in again.message


def test_a_status_that_does_not_redirect_names_nothing() -> None:
    created = response({}, 201, location="https://api.example.com/v1/jobs/7")
    replay = session(exchange(1, chat(user("hi")), created, url=URL))
    replay.answer(live(chat(user("hi")), URL))
    assert isinstance(replay.answer(live(None, "https://api.example.com/v1/jobs/7", "GET")), Stray)


@pytest.mark.parametrize(
    ("recorded", "played"),
    [
        ("/v1/found?after=[redacted:after:1]&n=[redacted:n:1]#part", "/v1/found?after=c7&n=2#part"),
        ("https://api.example.com/v1/found?after=[redacted:after:1]", "https://api.example.com/v1/found?after=c7&n=2"),
        ("/v1/other?after=[redacted:after:1]", "/v1/other?after=[redacted:after:1]"),
    ],
)
def test_a_link_gets_the_query_of_the_request_that_followed_it(recorded: str, played: str) -> None:
    there = exchange(2, None, "found", url="https://api.example.com/v1/found?after=c7&n=2", method="GET")
    replay = session(exchange(1, chat(user("hi")), response({}, 302, location=recorded), url=URL), there)
    answer = replay.answer(live(chat(user("hi")), URL))
    assert isinstance(answer, Answer)
    assert answer.exchange.response is not None
    assert answer.exchange.response.headers["location"] == played


@pytest.mark.parametrize(
    ("url", "host", "hostname"),
    [
        ("http://[::1]:9000/v1", "[::1]:9000", "::1"),
        ("http://::1:9000/v1", "[::1]:9000", "::1"),  # as version 0.1 wrote it
        ("https://[2001:DB8::7]:443/v1?a=b", "[2001:db8::7]", "2001:db8::7"),
        ("http://2001:db8::7/v1", "[2001:db8::7]", "2001:db8::7"),
        ("http://::ffff:127.0.0.1:9000/v1", "[::ffff:127.0.0.1]:9000", "::ffff:127.0.0.1"),
        ("http://127.0.0.1:9000/v1", "127.0.0.1:9000", "127.0.0.1"),
        ("https://api.example.com/v1", "api.example.com", "api.example.com"),
        ("/v1", "", ""),
    ],
)
def test_an_ipv6_host_has_brackets(url: str, host: str, hostname: str) -> None:
    found = address("POST", url)
    assert (found.host, found.hostname, found.path) == (host, hostname, "/v1")


def test_a_host_is_known_with_and_without_its_port_and_brackets() -> None:
    replay = session(exchange(1, chat(user("hi")), url="http://[::1]:9000/v1/chat/completions"))
    assert replay.knows_host("::1")
    assert replay.knows_host("[::1]:9000")
    assert replay.knows_port("::1", 9000)
    assert replay.knows_plain("::1", 9000)
    assert not replay.knows_host("::2")


def test_brackets_are_written_once_and_only_around_ipv6() -> None:
    assert [bracketed(host) for host in ("::1", "[::1]", "localhost", "10.0.0.7")] == [
        "[::1]",
        "[::1]",
        "localhost",
        "10.0.0.7",
    ]
    assert bracketed_url("http://a:b@host:80/x:y?u=::1") == "http://a:b@host:80/x:y?u=::1"
