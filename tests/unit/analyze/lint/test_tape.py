from __future__ import annotations

from pathlib import Path

import pytest

from wiretape.analyze.lint.base import LintFinding, Subject
from wiretape.analyze.lint.rules import lint, named
from wiretape.model.http import Exchange, Headers, JsonBody, Request, Response, StreamBody, TextBody
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape

KEY = "sk-proj-" + "Zq7Rw2Lx9Kt4Vb8N" * 2
CAPTURES = sorted((Path(__file__).parents[4] / "captures").glob("*.tape"))


def leaks(*exchanges: Exchange, redact: tuple[str, ...] = ()) -> list[LintFinding]:
    return lint(Subject(build_run([]), exchanges, redact), named("WT014"))


def sent(body: object = None, url: str = "https://api.example/v1/chat", **headers: str) -> Exchange:
    return Exchange(3, 0, Request("POST", url, Headers(headers.items()), JsonBody(body)), Response(200))


def places(*exchanges: Exchange, redact: tuple[str, ...] = ()) -> list[str | None]:
    found = leaks(*exchanges, redact=redact)
    assert KEY not in str(found)
    return [one.path for one in found]


def test_secrets_are_found_wherever_they_stand_and_never_printed() -> None:
    assert places(sent(authorization=f"Bearer {KEY}")) == ["request.headers.authorization"]
    assert places(sent(url=f"https://api.example/v1?key={KEY}")) == ["request.url"]
    assert places(sent({"messages": [{"content": "hi"}, {"content": f"my key is {KEY}"}]})) == [
        "request.body.messages[1].content"
    ]
    assert places(sent({"mcp": {"authorization_token": "Zq7Rw2Lx9Kt4Vb8N"}})) == [
        "request.body.mcp.authorization_token"
    ]
    text = Exchange(1, 0, Request("GET", "https://a.example/"), Response(401, body=TextBody(f"no such key: {KEY}")))
    assert places(text) == ["response.body"]


def test_a_secret_that_a_stream_splits_over_frames_is_found() -> None:
    frames = [f'data: {{"delta":"{part}"}}\n\n'.encode() for part in (KEY[:10], KEY[10:25], KEY[25:])]
    streamed = Response(200, Headers(), 0, StreamBody(frames, [0, 1, 2]))
    assert places(Exchange(1, 0, Request("GET", "https://a.example/"), streamed)) == ["response.body.events[0]"]


def test_a_credential_is_found_again_in_a_body_of_no_known_shape() -> None:
    secret = "Zq7Rw2Lx9Kt4Vb8N"
    found = places(sent({"note": f"use {secret} here"}, **{"x-api-key": secret}))
    assert found == ["request.headers.x-api-key", "request.body.note"]


def test_the_projects_own_patterns_count() -> None:
    body = {"messages": [{"content": "customer cust-4711 says hi"}]}
    assert places(sent(body)) == []
    assert places(sent(body), redact=(r"cust-\d+",)) == ["request.body.messages[0].content"]


def test_an_account_is_a_warning_and_words_in_a_credentials_place_are_nothing() -> None:
    [account] = leaks(sent(**{"openai-organization": "user-grnwlxd1653lxdzp921aoihz"}))
    assert (account.severity, account.exchange) == ("warning", 3)
    assert leaks(sent(authorization="Bearer test_openai_api_key", cookie="test_cookie")) == []
    assert leaks(sent(authorization="Bearer [redacted:authorization:1]")) == []


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_the_captures_hold_no_secrets(path: Path) -> None:
    assert leaks(*read_tape(path).exchanges) == []
