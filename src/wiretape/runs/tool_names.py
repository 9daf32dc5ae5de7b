"""Names of the tools with which known clients and frameworks manage agents.

A name alone is no evidence for a link: it only tells the meaning of a link that ids, headers or texts show.
"""

from __future__ import annotations

import re

STARTERS = frozenset({"Agent", "Task", "task", "agent", "subagent", "subagent_fork", "spawn_agent", "invoke_agent"})
_MESSENGERS = frozenset({"send_message", "SendMessage", "followup_task", "send_input", "message_agent", "assign_task"})
_LISTERS = frozenset({"list_agents", "list_subagents", "ListAgents", "list_tasks", "TaskList"})
_STOPPERS = frozenset({"interrupt_agent", "stop_agent", "close_agent", "kill_agent", "task_stop", "TaskStop"})
HANDS_OVER = re.compile(r"transfer|hand_?(?:off|over)|switch_agent|delegate_to|escalate", re.IGNORECASE)
_TAKER = re.compile(rf"^.*?(?:{HANDS_OVER.pattern})(?:_back)?(?:_to)?_?", re.IGNORECASE)


def _plain(tool: str) -> str:
    """The name without the client's namespace."""
    return tool.rpartition(".")[2]


def is_starter(tool: str) -> bool:
    return _plain(tool) in STARTERS


def is_messenger(tool: str) -> bool:
    """Whether a tool sends a message to an existing agent."""
    return _plain(tool) in _MESSENGERS


def is_lister(tool: str) -> bool:
    return _plain(tool) in _LISTERS


def is_stopper(tool: str) -> bool:
    return _plain(tool) in _STOPPERS


def forks(tool: str) -> bool:
    """Whether a tool starts a copy of the agent that calls it."""
    return "fork" in _plain(tool)


def hands_over(tool: str) -> bool:
    return HANDS_OVER.search(tool) is not None


def taker(tool: str) -> str | None:
    """The agent in a tool's name: `transfer_to_billing` hands over to billing."""
    return _TAKER.sub("", tool) or None
