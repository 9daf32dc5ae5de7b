"""The tree that each client's run must give: turns, agents, what passes between them, side calls. Data only.

Lines are those of tests/support/trees.py. What begins with `?` may be missing: a client may end before it is heard.
"""

from __future__ import annotations

_ALONE = ("1 turns", "root")

EXPECTED: dict[str, tuple[str, ...]] = {
    "dsh": (*_ALONE, "aside: title"),
    "dsh-sub": (
        *_ALONE,
        "root > subagent: subagent by subagent (header)",
        "closing: subagent > root (id, certain)",
        "listed: root > subagent (id, certain)",
        "message: root > subagent (id, certain)",
        "report: subagent > root (id, certain)",
        "aside: title",
    ),
    "dsh-fg": (
        *_ALONE,
        "root > subagent: subagent by subagent (data_flow)",
        "root > subagent: subagent by subagent (data_flow)",
        "root > subagent_fork: fork by subagent_fork (data_flow)",
        "fork: root > subagent_fork (data_flow, likely)",
        "result: subagent > root (data_flow, likely)",
        "result: subagent_fork > root (data_flow, likely)",
        "aside: title",
    ),
    "claude": _ALONE,
    "claude-sub": (
        *_ALONE,
        "root > Agent: subagent by Agent (header)",
        "root > Agent: subagent by Agent (header)",
        "?closing: Agent > root (id, certain)",
    ),
    "codex": _ALONE,
    "codex-ws": (*_ALONE, "aside: prewarm"),
    "codex-own-tls": (*_ALONE, "aside: prewarm"),
    "codex-sub": (
        *_ALONE,
        "root > /root/survey: subagent by collaboration.spawn_agent (header)",
        "closing: /root/survey > root (id, certain)",
        "listed: root > /root/survey (id, certain)",
        "message: root > /root/survey (id, likely)",
    ),
    "gemini": (*_ALONE, "aside: router"),
    "gemini-sub": (
        *_ALONE,
        "root > invoke_agent: subagent by invoke_agent (data_flow)",
        "result: invoke_agent > root (order, possible)",
        "aside: router",
    ),
    "qwen": _ALONE,
    "qwen-sub": (
        *_ALONE,
        "root > agent: subagent by agent (data_flow)",
        "root > agent: subagent by agent (data_flow)",
        "?closing: agent > root (id, certain)",
        "listed: root > agent (id, certain)",
    ),
    "opencode": (*_ALONE, "aside: title"),
    "opencode-sub": (
        *_ALONE,
        "root > task: subagent by task (header)",
        "root > task: subagent by task (header)",
        "result: task > root (id, certain)",
        "aside: title",
    ),
    "py-agents-resp": _ALONE,
    "py-agents-chat": _ALONE,
    "py-agents-sub": (
        *_ALONE,
        "root > ask_child: subagent by ask_child (data_flow)",
        "root > specialist: handoff by transfer_to_specialist (id)",
        "result: ask_child > root (data_flow, likely)",
    ),
    "py-langgraph-sub": ("1 turns", "root", "root", "root", "result: root > root (data_flow, likely)"),
    "py-smol-openai": _ALONE,
    "py-smol-litellm": _ALONE,
    "py-smol-sub": (
        *_ALONE,
        "root > child: subagent by child (data_flow)",
        "result: child > root (data_flow, likely)",
    ),
}


def differences(case: str, tree: tuple[str, ...]) -> list[str]:
    """Return missing lines with `-`, and unexpected lines with `+`. Runs with and without TLS are equal."""
    name = case if case in EXPECTED else case.removesuffix("-tls").removesuffix("-own")
    if name not in EXPECTED:
        return []
    wanted = [line for line in EXPECTED[name] if not line.startswith("?")]
    allowed = [line.removeprefix("?") for line in EXPECTED[name]]
    missing = [f"- {line}" for line in dict.fromkeys(wanted) if tree.count(line) < wanted.count(line)]
    return missing + [f"+ {line}" for line in dict.fromkeys(tree) if tree.count(line) > allowed.count(line)]
