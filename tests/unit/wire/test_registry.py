"""The registry: numbering, working and broken plug-ins, and cached messages."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import pytest
from tests.support.wire import CHAT, MESSAGES, RESPONSES, answer, blocks, decode, exchange, stream

from wiretape import _plugins
from wiretape._plugins import FORMATS
from wiretape.model.call import CallRequest, ModelCall
from wiretape.model.http import Exchange, Headers, JsonBody, Request
from wiretape.wire import registry
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.registry import Registry, built_in, default_registry, load_registry


class Loud:
    """A plug-in that claims everything and then raises."""

    name: ClassVar[str] = "loud"
    volatile: ClassVar[Volatile] = Volatile()

    def claims(self, request: Request) -> Claim:
        return Claim.CERTAIN

    def claims_response(self, exchange: Exchange) -> Claim:
        return Claim.NO

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        raise KeyError("oops")

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        return CallRequest(None, ())

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return Headers(), b""


class Shy(Loud):
    name: ClassVar[str] = "shy"

    def claims(self, request: Request) -> Claim:
        raise RuntimeError("no path")


def test_calls_are_numbered_by_start_without_other_exchanges() -> None:
    late = exchange(CHAT, None, number=1, at=50)
    early = exchange(MESSAGES, None, number=2, at=10)
    other = exchange("https://x.example.com/telemetry", None, request={"a": 1}, number=3, at=0)
    found = registry.decode([late, other, early], Registry(built_in()))
    assert [(c.number, c.exchange, c.format) for c in found] == [(1, 2, "anthropic.messages"), (2, 1, "openai.chat")]


def plug(monkeypatch: pytest.MonkeyPatch, **values: str) -> Registry:
    points = [EntryPoint(name, value, FORMATS.group) for name, value in values.items()]
    monkeypatch.setattr(_plugins, "entry_points", lambda group: points if group == FORMATS.group else [])
    return load_registry()


def test_a_plugin_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = plug(monkeypatch, loud="tests.unit.wire.plugin_for_tests:Quiet")
    assert [f.name for f in loaded.formats][-1] == "quiet"
    assert loaded.problems == []


def test_broken_plugins_are_reported_and_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = plug(
        monkeypatch,
        gone="no_such_module_anywhere:Format",
        absent="wiretape.wire.base:NoSuchFormat",
        poor="wiretape.wire.base:Memo",
    )
    assert [f.name for f in loaded.formats] == [f.name for f in built_in()]
    assert [p.partition(" cannot")[0].partition(" lacks")[0] for p in loaded.problems] == [
        "wire format plug-in gone (no_such_module_anywhere:Format)",
        "wire format plug-in absent (wiretape.wire.base:NoSuchFormat)",
        "wire format plug-in poor (wiretape.wire.base:Memo)",
    ]
    assert "ModuleNotFoundError" in loaded.problems[0]
    assert "claims" in loaded.problems[2]


def test_a_failing_plugin_loses_only_its_own_call() -> None:
    failing = Registry([Loud(), *built_in()])
    (call,) = registry.decode([exchange(CHAT, stream([]))], failing)
    assert call.format == "loud"
    assert call.response is not None
    assert blocks(call.response.messages) == [("unknown", "undecoded")]
    assert failing.problems == ["wire format loud failed: KeyError: 'oops'"]


def test_a_plugin_that_raises_does_not_bid() -> None:
    failing = Registry([Shy(), *built_in()])
    assert [c.format for c in registry.decode([exchange(CHAT, None)] * 2, failing)] == ["openai.chat"] * 2
    assert failing.problems == ["wire format shy failed: RuntimeError: no path"]


def test_ties_go_to_the_format_registered_first() -> None:
    class Also(Loud):
        name: ClassVar[str] = "also"

    found = Registry([*built_in(), Loud(), Also()]).recognise_request(
        Request("POST", "https://x.example.com/v1/nothing", Headers())
    )
    assert found is not None
    assert found.name == "loud"


def test_the_default_registry_is_loaded_once() -> None:
    assert default_registry() is default_registry()
    names = {"openai.chat", "openai.responses", "anthropic.messages"}
    assert names <= {f.name for f in default_registry().formats}


HISTORY: dict[str, Any] = {
    CHAT: ("messages", {"role": "user", "content": "Hi"}),
    RESPONSES: ("input", {"role": "user", "content": "Hi"}),
    MESSAGES: ("messages", {"role": "user", "content": "Hi"}),
}


@pytest.mark.parametrize("url", HISTORY)
def test_a_message_seen_before_is_not_decoded_again(url: str) -> None:
    member, item = HISTORY[url]
    tools: list[Any] = [{"name": "f"}]
    memo = Memo()
    requests = [
        {"model": "m", member: [item, dict(item)], "tools": tools},
        {"model": "m", member: [item], "tools": tools},
    ]
    found = [
        c.request
        for c in registry.decode([exchange(url, None, request=r) for r in requests], Registry(built_in()), memo)
    ]
    assert found[0].messages[0] is found[1].messages[0]
    assert found[0].messages[1] is not found[0].messages[0]
    assert found[0].tools is found[1].tools


def test_linking_headers_are_kept() -> None:
    headers = [
        ("X-Claude-Code-Agent-Id", "a"),
        ("x-session-id", "s"),
        ("x-deepseek-harness-session-id", "d"),
        ("thread-id", "t"),
        ("X-Stainless-Retry-Count", "1"),
        ("idempotency-key", "i"),
        ("authorization", "Bearer x"),
        ("user-agent", "u"),
    ]
    call = decode(exchange(CHAT, None, request_headers=headers))
    assert dict(call.headers) == {
        "x-claude-code-agent-id": "a",
        "x-session-id": "s",
        "x-deepseek-harness-session-id": "d",
        "thread-id": "t",
        "x-stainless-retry-count": "1",
        "idempotency-key": "i",
    }


@pytest.mark.parametrize("url", HISTORY)
def test_errors_in_the_providers_shape_decode_to_that_error(url: str) -> None:
    found = default_registry().recognise_request(
        Request("POST", url, Headers(), JsonBody(exchange(url, None).request.body.value))
    )  # type: ignore[union-attr]
    assert found is not None
    headers, body = found.error(400, "no recorded call answers this", "wiretape_miss")
    assert headers["content-type"] == "application/json"
    error = answer(url, body, status=400).error
    assert error is not None
    assert (error.message, error.code, error.retryable) == ("no recorded call answers this", "wiretape_miss", False)
