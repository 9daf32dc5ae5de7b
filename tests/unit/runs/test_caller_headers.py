from __future__ import annotations

import pytest
from tests.support.calls import make_call

from wiretape.runs.caller_headers import NOBODY, Identity, identity, retry_count


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, NOBODY),
        ({"x-claude-code-session-id": "s"}, Identity("s")),
        (
            {"x-claude-code-session-id": "s", "x-claude-code-agent-id": "a", "x-claude-code-parent-agent-id": "p"},
            Identity("s", "a", "p"),
        ),
        ({"x-session-id": "c", "x-parent-session-id": "p"}, Identity("c", None, "p")),
        ({"x-deepseek-harness-session-id": "d"}, Identity("d")),
        ({"thread-id": "t", "session-id": "s"}, Identity("t")),
        (
            {"x-codex-turn-metadata": '{"thread_id": "t", "thread_source": "subagent", "agent_name": "n"}'},
            Identity("t", name="n"),
        ),
        ({"x-codex-turn-metadata": "[1]"}, NOBODY),
        ({"x-codex-turn-metadata": "no json"}, NOBODY),
    ],
)
def test_identities_in_headers(headers: dict[str, str], expected: Identity) -> None:
    assert identity(make_call(1, [], headers=headers)) == expected


@pytest.mark.parametrize(("value", "count"), [("0", 0), ("2", 2), ("two", 0), ("²", 0)])
def test_the_retry_count_of_an_sdk(value: str, count: int) -> None:
    assert retry_count(make_call(1, [], headers={"x-stainless-retry-count": value})) == count
    assert retry_count(make_call(1, [])) == 0
