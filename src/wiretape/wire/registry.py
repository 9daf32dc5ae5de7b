"""The registered formats, recognition of an exchange's format, and decoding of a tape's model calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar, cast

from wiretape._plugins import FORMATS, installed
from wiretape.model.call import CallRequest, CallResponse, Message, ModelCall, Unknown
from wiretape.model.http import Exchange, Request
from wiretape.wire.anthropic.messages import AnthropicMessages
from wiretape.wire.base import Claim, Memo, SocketFormat, WireFormat
from wiretape.wire.bedrock.converse import BedrockConverse
from wiretape.wire.bedrock.invoke import BedrockInvoke
from wiretape.wire.cohere.chat import CohereChat
from wiretape.wire.cohere.chat_v1 import CohereChatV1
from wiretape.wire.decoding import build_call, unreadable_request
from wiretape.wire.gemini.generate import GeminiGenerate
from wiretape.wire.gemini.interactions import GeminiInteractions
from wiretape.wire.mcp.traffic import is_jsonrpc
from wiretape.wire.ollama.chat import OllamaChat, OllamaGenerate
from wiretape.wire.openai.chat import OpenAIChat
from wiretape.wire.openai.completions import OpenAICompletions
from wiretape.wire.openai.responses import OpenAIResponses
from wiretape.wire.openai.responses_socket import ResponsesSocket
from wiretape.wire.openai.responses_stored import with_background_answers, with_histories
from wiretape.wire.side_calls import SIDE_CALLS

T = TypeVar("T")


class Registry:
    """The formats, in order of preference. `problems` names the plug-ins that failed, and why."""

    def __init__(self, formats: Sequence[WireFormat], problems: Sequence[str] = ()) -> None:
        self.formats = tuple(formats)
        self.sockets: tuple[SocketFormat, ...] = (
            *built_in_sockets(),
            *(cast(SocketFormat, f) for f in formats if hasattr(f, "decode_socket")),
        )
        self.problems = list(problems)

    def named(self, name: str) -> WireFormat | None:
        return next((f for f in self.formats if f.name == name), None)

    def recognise_request(self, request: Request) -> WireFormat | None:
        """Return the format that a request shows by itself, or None."""
        if is_jsonrpc(request):
            return None  # tools use it, models do not
        best, bid = None, Claim.NO
        for candidate in self.formats:
            claim = self._bid(candidate, candidate.claims, request)
            if claim > bid:
                best, bid = candidate, claim
                if bid is Claim.CERTAIN:
                    break  # the highest bid
        return best

    def recognise(self, exchange: Exchange) -> WireFormat | None:
        """Return the format of an exchange, or None if it is not a model call."""
        found = self.recognise_request(exchange.request)
        if found is not None or exchange.response is None or is_jsonrpc(exchange.request):
            return found
        return next((f for f in self.formats if self._bid(f, f.claims_response, exchange) > Claim.NO), None)

    def calls_of(self, exchange: Exchange, memo: Memo) -> tuple[ModelCall, ...]:
        """Return the model calls of one exchange, not numbered yet."""
        if exchange.messages:
            return self._socket_calls(exchange, memo)
        found = self.recognise(exchange)
        if found is None:
            return ()
        try:
            return (found.decode(exchange, memo),)
        except Exception as problem:
            return (self._undecoded(found, exchange, problem),)

    def socket_format(self, exchange: Exchange) -> SocketFormat | None:
        """Return the format of a WebSocket that carries model calls, or None."""
        bids = [(self._bid(candidate, candidate.claims_socket, exchange), candidate) for candidate in self.sockets]
        best, found = max(bids, key=lambda bid: bid[0], default=(Claim.NO, None))  # the first of equal bids
        return found if best > Claim.NO else None

    def _socket_calls(self, exchange: Exchange, memo: Memo) -> tuple[ModelCall, ...]:
        found = self.socket_format(exchange)
        if found is None:
            return ()
        try:
            return tuple(found.decode_socket(exchange, memo))
        except Exception as problem:
            return (self._undecoded(found, exchange, problem),)

    def _bid(self, candidate: WireFormat | SocketFormat, claims: Callable[[T], Claim], given: T) -> Claim:
        """Return a format's bid; a format that raises does not bid."""
        try:
            return claims(given)
        except Exception as problem:
            self._report(candidate, problem)
            return Claim.NO

    def _undecoded(self, culprit: WireFormat | SocketFormat, exchange: Exchange, problem: Exception) -> ModelCall:
        """Return the call of a format that raised, although it must not; the problem is reported."""
        problem_text = self._report(culprit, problem)
        request = unreadable_request(exchange.request.body)
        response = None
        if exchange.response is not None:
            kept = Message("assistant", (Unknown("undecoded", problem_text),), ("",))
            response = CallResponse(exchange.response.status, messages=(kept,), complete=False)
        return build_call(exchange, culprit.name, CallRequest(None, request.messages), response)

    def _report(self, culprit: WireFormat | SocketFormat, problem: Exception) -> str:
        problem_text = f"wire format {culprit.name} failed: {type(problem).__name__}: {problem}"
        if problem_text not in self.problems:
            self.problems.append(problem_text)
        return problem_text


def built_in() -> list[WireFormat]:
    conversations: list[WireFormat] = [
        OpenAIChat(),
        OpenAIResponses(),
        AnthropicMessages(),
        GeminiGenerate(),
        GeminiInteractions(),
        BedrockConverse(),
        BedrockInvoke(),
        OllamaChat(),
        OllamaGenerate(),
        CohereChat(),
        CohereChatV1(),
    ]
    return [*conversations, OpenAICompletions(), *(make() for make in SIDE_CALLS)]


def built_in_sockets() -> list[SocketFormat]:
    return [ResponsesSocket()]


def load_registry() -> Registry:
    """Load the built-in formats and those of installed plug-ins. A broken plug-in is reported and omitted."""
    formats, problems = built_in(), []
    for plugin in installed(FORMATS):
        if plugin.problem:
            problems.append(f"wire format plug-in {plugin.name} ({plugin.value}) {plugin.problem}")
        else:
            formats.append(plugin.loaded)
    return Registry(formats, problems)


@lru_cache(1)
def default_registry() -> Registry:
    """Return the registry of this installation, loaded once."""
    return load_registry()


def decode(
    exchanges: Iterable[Exchange], registry: Registry | None = None, memo: Memo | None = None
) -> list[ModelCall]:
    """Return every model call of these exchanges, numbered from 1 by start."""
    registry = registry or default_registry()
    memo = memo if memo is not None else Memo()
    exchanges = list(exchanges)
    return numbered([call for exchange in exchanges for call in registry.calls_of(exchange, memo)], exchanges)


def numbered(calls: list[ModelCall], exchanges: Sequence[Exchange]) -> list[ModelCall]:
    """Number the calls of all these exchanges from 1 by start, and complete them from each other."""
    calls = with_background_answers(calls, exchanges)
    calls.sort(key=lambda call: (call.at, call.exchange, call.part or 0))
    return [replace(call, number=number) for number, call in enumerate(with_histories(calls), 1)]
