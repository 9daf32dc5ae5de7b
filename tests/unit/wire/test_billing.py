"""The service tier that an answer names, and the cost in its headers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import DONE, answer, chunk, named

CHAT = "https://api.openai.com/v1/chat/completions"
RESPONSES = "https://api.openai.com/v1/responses"
MESSAGES = "https://api.anthropic.com/v1/messages"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent"
CONVERSE = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"
MESSAGE = {"role": "assistant", "content": "a"}
CHOICE = {"index": 0, "message": MESSAGE, "finish_reason": "stop"}
TEXT = {"role": "assistant", "content": [{"text": "a"}]}
DONE_RESPONSE = {"id": "r", "object": "response", "status": "completed", "output": [], "service_tier": "flex"}


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (CHAT, {"choices": [CHOICE], "service_tier": "flex"}),
        (CHAT, [chunk({"content": "a"}, "stop", service_tier="flex"), chunk(None), DONE]),
        (CHAT, [chunk({"content": "a"}, "stop"), chunk(None, usage={"prompt_tokens": 1}, service_tier="flex"), DONE]),
        (RESPONSES, DONE_RESPONSE),
        (RESPONSES, named([{"type": "response.completed", "response": DONE_RESPONSE}])),
        (MESSAGES, {"type": "message", "content": [], "usage": {"input_tokens": 1, "service_tier": "flex"}}),
        (GEMINI, {"candidates": [], "usageMetadata": {"promptTokenCount": 1, "serviceTier": "flex"}}),
        (GEMINI, {"candidates": [], "usageMetadata": {"promptTokenCount": 1, "trafficType": "flex"}}),
        (CONVERSE, {"output": {"message": TEXT}, "stopReason": "end_turn", "serviceTier": {"type": "flex"}}),
    ],
)
def test_the_tier_that_served_the_call(url: str, body: Any) -> None:
    assert answer(url, body).service_tier == "flex"


def test_the_tier_and_the_cost_in_headers() -> None:
    body = {"choices": [CHOICE]}
    assert answer(CHAT, body).service_tier is None
    assert answer(CHAT, body, headers=[("x-litellm-response-cost", "0.0025")]).cost == 0.0025
    for text in ("", "None", "nan", "-1", "inf"):
        assert answer(CHAT, body, headers=[("x-litellm-response-cost", text)]).cost is None
    tier = [("x-gemini-service-tier", "flex")]
    assert (
        answer(GEMINI, {"candidates": [], "usageMetadata": {"promptTokenCount": 1}}, headers=tier).service_tier
        == "flex"
    )
