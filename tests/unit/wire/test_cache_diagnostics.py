"""Cache diagnostics of providers are kept, streamed or whole."""

from __future__ import annotations

import pytest
from tests.support.wire import answer, named, stream

from wiretape.analyze.cache.breaks import ProviderReason, provider_reason
from wiretape.model.call import CallRequest, CallResponse, ModelCall

MESSAGES, RESPONSES = "https://api.anthropic.com/v1/messages", "https://api.openai.com/v1/responses"
SAID = {"cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 900}}
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [{"type": "text", "text": "a"}],
           "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 1}}  # fmt: skip


def miss(response: CallResponse) -> ProviderReason | None:
    return provider_reason(ModelCall(1, 1, "x", CallRequest("m", ()), response, 0, 1, None))


def test_a_whole_message() -> None:
    assert miss(answer(MESSAGES, {**MESSAGE, "diagnostics": SAID})) == ProviderReason(
        "system_changed", "prompt_changed", 900
    )


def test_a_streamed_message() -> None:
    start = {"type": "message_start", "message": {**MESSAGE, "content": [], "diagnostics": SAID}}
    events = [start, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}]
    response = answer(MESSAGES, stream(named([*events, {"type": "message_stop"}])))
    assert miss(response) == ProviderReason("system_changed", "prompt_changed", 900)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {"cache_miss": {"reason": "tools_changed", "cache_missed_tokens": 7}},
            ProviderReason("tools_changed", "tools_changed", 7),
        ),
        ({"type": "cache_miss", "reason": "model_changed"}, ProviderReason("model_changed", "model_switch", None)),
        ({"cache_hit": {"cached_tokens": 7}}, None),
        (None, None),
        (["odd"], None),
    ],
)
def test_a_response(told: object, expected: ProviderReason | None) -> None:
    body = {"id": "r", "object": "response", "status": "completed", "output": [], "prompt_cache_diagnostics": told}
    assert miss(answer(RESPONSES, body)) == expected
