"""How a history grows in InvokeModel: as the vendor's own format says, which the body shows.

Anthropic's messages, Nova's Converse shapes and Chat Completions have a history. A plain prompt (Llama, Titan) has
none: how its program writes a conversation into the text, nothing on the wire says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from wiretape.model.http import Headers, Response
from wiretape.model.jsonvalue import JsonObject
from wiretape.wire import recognition
from wiretape.wire.anthropic.next_request import AnthropicGrower
from wiretape.wire.anthropic.stream import AnthropicAssembly
from wiretape.wire.bedrock.chunks import Vendor, vendor_events, vendor_of
from wiretape.wire.bedrock.eventstream import is_event_stream, read_events
from wiretape.wire.bedrock.next_request import ConverseGrower
from wiretape.wire.bedrock.stream import ConverseAssembly
from wiretape.wire.lenient import obj
from wiretape.wire.next_request import Assembles, InList, Since
from wiretape.wire.openai.chat_next_request import ChatGrower
from wiretape.wire.openai.chat_stream import ChatAssembly
from wiretape.wire.payload import EventPayload, JsonPayload, read_payload

_MODEL = re.compile(r"(/model/)[^/?]+(/invoke(?:-with-response-stream)?)(?=$|\?)")
_GROWERS: Final[Mapping[Vendor, InList]] = {
    "anthropic.messages": AnthropicGrower(),
    "bedrock.converse": ConverseGrower(),
    "openai.chat": ChatGrower(),
}


def vendor_of_request(body: JsonObject, headers: Headers | None = None) -> Vendor | None:
    """Whose language a request is in; None: it is a prompt, or something to embed or rank."""
    shown = recognition.body_format(body, headers or Headers())
    if shown == "anthropic.messages":
        return "anthropic.messages"
    if shown == "bedrock.converse" or "schemaVersion" in body:
        return "bedrock.converse"
    return "openai.chat" if isinstance(body.get("messages"), list) else None


class InvokeGrower:
    def history(self, body: JsonObject) -> tuple[str, ...]:
        grower = self._of(body)
        return grower.history(body) if grower is not None else ()

    def answer(self, response: Response) -> JsonObject:
        payload = vendor_events(read_events(response)) if is_event_stream(response) else read_payload(response)
        if isinstance(payload, JsonPayload):
            return obj(payload.value)
        return _gathered(payload) if isinstance(payload, EventPayload) else {}

    def grow(self, body: JsonObject, since: Since) -> JsonObject:
        grower = self._of(body)
        return grower.grow(body, since) if grower is not None else body

    def retarget(self, url: str, body: JsonObject, model: str) -> tuple[str, JsonObject]:
        name = quote(model, safe="")
        return _MODEL.sub(lambda found: found[1] + name + found[2], url), body

    def held(self, body: JsonObject) -> JsonObject:
        grower = self._of(body)
        return grower.held(body) if grower is not None else {}

    @staticmethod
    def _of(body: JsonObject) -> InList | None:
        vendor = vendor_of_request(body)
        return _GROWERS[vendor] if vendor is not None else None


def _gathered(payload: EventPayload) -> JsonObject:
    assembly: Assembles
    match vendor_of(payload):
        case "anthropic.messages":
            assembly = AnthropicAssembly()
        case "bedrock.converse":
            assembly = ConverseAssembly()
        case "openai.chat":
            assembly = ChatAssembly()
        case None:
            return {}
    for event in payload.events:
        assembly.add(event)
    return obj(assembly.value())
