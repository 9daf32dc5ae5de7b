"""A session's messages contain no secret of a live request, while matching compares the real values."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.canaries import shapes, token
from tests.support.replaying import CHAT, chat, exchange, live, reply, response, session, user
from tests.support.sockets import socket

from wiretape.matching.session import ReplaySession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import Answer, LiveRequest, Miss, Stray
from wiretape.model.http import Headers

Sent = tuple[Any, str, dict[str, str]]  # body, URL, headers


def plant(place: str, secret: str, known: str) -> Sent:
    """A live request with secrets: `secret` is recognized by its place, `known` by its shape."""
    member = chat(user("b"), metadata={"login": {"password": secret}})
    return {
        "text": (chat(user(f"b {known} c")), CHAT, {}),
        "header": (chat(user(f"b {secret} c")), CHAT, {"authorization": f"Bearer {secret}"}),
        "cookie": (chat(user(f"b {secret} c")), CHAT, {"cookie": f"sid={secret}; theme=dark"}),
        "query": (chat(user("b")), f"{CHAT}?api_key={secret}", {}),
        "user info": (chat(user(f"b {secret}")), CHAT.replace("//", f"//me:{secret}@"), {}),
        "member": (member, CHAT, {}),
        "member of a message": (chat({"role": "user", "content": "b", "auth": {"client_secret": secret}}), CHAT, {}),
        "JSON in text": (chat(user(json.dumps({"token": secret, "user": "me"}))), CHAT, {}),
        "setting": (chat(user("b"), api_key=secret), CHAT, {}),
        "name of a member": (chat(user("b"), metadata={known: "x"}), CHAT, {}),
        "a path": (chat(user("b")), f"{CHAT}/{known}/x", {}),
    }[place]


PLACES = (
    "text header cookie query member setting|user info|member of a message|JSON in text|name of a member|a path"
).replace(" ", "|", 5).split("|")  # fmt: skip
SECRETS = st.integers(0, 10**6).map(random.Random)


def handed_out(made: ReplaySession, outcome: Any) -> str:
    """All that a person may get to read of an outcome."""
    words = [made.report().model_dump_json(), repr(outcome)]
    if isinstance(outcome, Miss):
        words += [outcome.message, outcome.body.decode(), str(outcome.headers.pairs())]
    return "\n".join(words)


@pytest.mark.parametrize("place", PLACES)
@given(source=SECRETS)
def test_an_outcome_contains_no_secret(place: str, source: random.Random) -> None:
    secret = token(source, 18)
    text, core = source.choice([*shapes(source).values()])
    body, url, headers = plant(place, secret, core if place in ("name of a member", "a path") else text)
    made = session(exchange(1, chat(user("b d c"))), exchange(2, chat(user("b"), metadata={"a": 1}), url=f"{CHAT}?a=1"))
    outcome = made.answer(live(body, url, **headers))
    assert isinstance(outcome, Miss | Answer | Stray)
    said = handed_out(made, outcome)
    assert secret not in said
    if place == "text":
        assert core not in said


@given(source=SECRETS)
def test_a_secret_of_an_earlier_request_is_not_printed_for_a_later_one(source: random.Random) -> None:
    secret = token(source, 30)
    made = session(exchange(1, chat(user("a"))), exchange(2, chat(user("b"))))
    assert isinstance(made.answer(live(chat(user("a")), x_api_key=secret)), Answer)
    missed = made.answer(live(chat(user(f"b {secret}"))))
    assert isinstance(missed, Miss)
    assert secret not in handed_out(made, missed)


@given(source=SECRETS)
def test_differing_values_are_compared_unredacted(source: random.Random) -> None:
    """Two secrets have the same printed form but are different values for the session."""
    one, other = token(source, 30), token(source, 30)
    made = session(exchange(1, chat(user(f"key {one}"))))
    assert isinstance(made.answer(live(chat(user(f"key {other}")), x_api_key=other)), Miss)
    assert isinstance(made.answer(live(chat(user(f"key {one}")), x_api_key=one)), Answer)


def test_a_live_value_in_the_place_of_a_placeholder_is_shown_as_that_placeholder() -> None:
    made = session(exchange(1, chat(user("a"), user("the key is [redacted:api-key:1], use it"))))
    missed = made.answer(live(chat(user("a"), user("the key is Zx9QpL33mmW8, do not use it"))))
    assert isinstance(missed, Miss)
    assert "    recorded  the key is [redacted:api-key:1], use it\n" in missed.message
    assert "    live      the key is [redacted:api-key:1], do not use it\n" in missed.message
    assert made.report().missed[0].differences[0].live == "the key is [redacted:api-key:1], do not use it"


def test_a_new_secret_gets_an_unused_placeholder() -> None:
    made = session(exchange(1, chat(user("the password is [redacted:password:1]"))))
    missed = made.answer(live(chat(user('my {"password": "Zx9QpL33mmW8"}'))))
    assert isinstance(missed, Miss)
    assert '    live      my {"password": "[redacted:password:2]"}\n' in missed.message


def test_a_miss_of_a_websocket_contains_no_secret() -> None:
    secret = token(random.Random(3), 18)
    asked = {"type": "response.create", "input": "hello", "session": {"user": "me"}}
    made = session(socket([("client", asked), ("server", {})]))
    play = made.open_socket(
        LiveRequest("GET", "https://api.example.com/v1/responses", Headers([("upgrade", "websocket")]))
    )
    assert isinstance(play, SocketPlay)
    play.receive(json.dumps({**asked, "input": "hullo", "session": {"password": secret}}))
    assert isinstance(play.miss, Miss)
    assert "hullo" in play.miss.message
    assert secret not in handed_out(made, play.miss)


def test_a_miss_of_a_tool_contains_no_secret() -> None:
    secret = token(random.Random(4), 18)
    made = session(exchange(1, chat(user("a")), response(reply("b"))))
    missed = made.call_tool("login", {"user": "me", "password": secret})
    assert isinstance(missed, Miss)
    assert 'login({"user":"me","password":"[redacted:password:1]"})' in missed.message


def test_an_internal_error_of_the_session_contains_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = token(random.Random(5), 30)
    made = session(exchange(1, chat(user("a"))))

    def fail(request: LiveRequest) -> None:
        raise ValueError(f"cannot read {request.headers['authorization']}")

    monkeypatch.setattr(made, "_answer", fail)
    missed = made.answer(live(chat(user("a")), f"{CHAT}?key={secret}", authorization=f"Bearer {secret}"))
    assert isinstance(missed, Miss)
    assert missed.message.startswith("wiretape failed on POST")
    assert secret not in handed_out(made, missed)


@pytest.mark.parametrize("url", [CHAT, f"{CHAT}?key=\xffabcdEFGH1234abcdEFGH"])
@pytest.mark.parametrize(
    "body",
    [
        b'\xff {"password": "\xffZx9QpL33mmW8kd2Q\xfe"}',
        b"\xff sk-proj-abcdEFGH1234abcdEFGH1234abcdEFGH1234\xff",
        b'{"model":"m","messages":[{"role":"user","content":"a","password":"\\ud800Zx9QpL33mmW8kd2Q"}]}',
    ],
)
def test_bytes_that_are_not_text_are_a_miss_like_any_other(body: bytes, url: str) -> None:
    made = session(exchange(1, chat(user("a"))))
    missed = made.answer(live(body, url, authorization="Bearer \xffabc1234567890ABCDEFG"))
    assert isinstance(missed, Miss | Stray)
    assert getattr(missed, "reason", "") != "fault"
    said = handed_out(made, missed)
    assert "mmW8kd2Q" not in said
    assert "EFGH1234abcd" not in said
