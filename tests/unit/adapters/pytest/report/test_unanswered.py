"""Why a test could not be recorded: what was asked live, and what to set."""

from __future__ import annotations

from dataclasses import replace

from tests.support.replaying import chat, exchange, response, user

from wiretape.adapters.pytest.report.unanswered import unanswered
from wiretape.model.http import Ended, Exchange

OPENAI, GATEWAY = "https://api.openai.com/v1/chat/completions", "http://127.0.0.1:9911/v1/chat/completions"


def asked(url: str = OPENAI, status: int | None = None) -> Exchange:
    made = exchange(1, chat(user("hi")), "hello", url=url)
    if status is None:
        return replace(made, response=None, ended=Ended.UPSTREAM_UNREACHABLE)
    return replace(made, response=response({}, status))


def test_an_address_that_cannot_be_reached_is_named_with_the_one_that_the_tape_has() -> None:
    assert unanswered([asked(f"{OPENAI}?key=secret"), asked()], [asked(GATEWAY, 200)]) == [
        f"asked live 2 times: POST {OPENAI}: it could not be reached",
        "  the tape has it from http://127.0.0.1:9911: set the base URL that the code reads, if models answer there",
    ]
    assert unanswered([asked()], []) == [f"asked live: POST {OPENAI}: it could not be reached"]
    assert unanswered([asked()], [asked(OPENAI, 200)]) == [f"asked live: POST {OPENAI}: it could not be reached"]


def test_a_key_that_is_refused_is_what_lacks() -> None:
    assert unanswered([asked(status=401)], [asked(GATEWAY, 200)]) == [
        f"asked live: POST {OPENAI}: refused with 401",
        "  to be recorded a test needs a key that is valid there; where none is set, it has a dummy",
    ]


def test_what_was_answered_is_no_reason() -> None:
    assert unanswered([asked(status=200), asked(status=429)], []) == []
