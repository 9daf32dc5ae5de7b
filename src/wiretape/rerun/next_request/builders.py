"""The request builders of the wire formats.

Formats without a builder are decoded, replayed and explained like any other, but `wiretape rerun` and `wiretape fork`
cannot continue their conversations. A plug-in's format provides its builder in the member `request_builder`.
"""

from __future__ import annotations

from typing import cast

from wiretape.rerun.next_request.base import RequestBuilder
from wiretape.rerun.next_request.chat import ChatBuilder, CohereBuilder, OllamaBuilder
from wiretape.rerun.next_request.generate_content import GenerateContentBuilder
from wiretape.rerun.next_request.messages import AnthropicBuilder, ConverseBuilder, InvokeBuilder
from wiretape.rerun.next_request.stored_history import InteractionsBuilder, ResponsesBuilder
from wiretape.wire.base import WireFormat

_BUILDERS: dict[str, RequestBuilder] = {
    "openai.chat": ChatBuilder(),
    "openai.responses": ResponsesBuilder(),
    "anthropic.messages": AnthropicBuilder(),
    "gemini.generate": GenerateContentBuilder(),
    "gemini.interactions": InteractionsBuilder(),
    "bedrock.converse": ConverseBuilder(),
    "bedrock.invoke": InvokeBuilder(),
    "ollama.chat": OllamaBuilder(),
    "cohere.chat": CohereBuilder(),
}


def builder_for(form: WireFormat | None) -> RequestBuilder | None:
    """Return the format's request builder, or None if it has none."""
    own = getattr(form, "request_builder", None)
    return cast("RequestBuilder | None", own) or _BUILDERS.get(form.name if form is not None else "")
