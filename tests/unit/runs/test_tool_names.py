from __future__ import annotations

import pytest

from wiretape.runs.tool_names import forks, hands_over, is_lister, is_messenger, is_starter, is_stopper, taker


def test_a_namespace_before_the_name_does_not_count() -> None:
    assert is_starter("collaboration.spawn_agent")
    assert is_messenger("collaboration.followup_task")
    assert is_lister("list_agents")
    assert is_stopper("collaboration.interrupt_agent")
    assert forks("subagent_fork")
    assert not any(kind("read_file") for kind in (is_starter, is_messenger, is_lister, is_stopper, forks, hands_over))


@pytest.mark.parametrize(
    ("tool", "agent"),
    [
        ("transfer_to_billing", "billing"),
        ("transfer_back_to_supervisor", "supervisor"),
        ("handoff_to_refund_agent", "refund_agent"),
        ("hand_off_Anna", "Anna"),
        ("transfer", None),
    ],
)
def test_a_tool_that_hands_over_names_the_agent(tool: str, agent: str | None) -> None:
    assert hands_over(tool)
    assert taker(tool) == agent
