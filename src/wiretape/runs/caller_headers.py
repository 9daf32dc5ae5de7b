"""Session, agent and parent ids in request headers: what the client reports about the caller."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from wiretape.model.call import ModelCall
from wiretape.model.jsonvalue import Json

# (header of one's own session or thread, header of the parent's)
_SESSIONS = (
    ("thread-id", "x-codex-parent-thread-id"),
    ("x-session-id", "x-parent-session-id"),
    ("x-deepseek-harness-session-id", ""),
    ("x-claude-code-session-id", ""),
    ("session-id", ""),
)
_CODEX = "x-codex-turn-metadata"


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller of a call by the client's headers. `agent` is set for subagents that share their parent's session."""

    session: str | None = None
    agent: str | None = None
    parent: str | None = None  # the parent's session or agent id
    name: str | None = None

    @property
    def key(self) -> tuple[str | None, str | None] | None:
        """Equal for all calls of an agent; None without headers."""
        return (self.session, self.agent) if self.session or self.agent else None


NOBODY = Identity()


def identity(call: ModelCall) -> Identity:
    """The identity in a call's headers."""
    if not call.headers:
        return NOBODY
    headers = dict(call.headers)
    agent = headers.get("x-claude-code-agent-id")
    if agent:
        session = headers.get("x-claude-code-session-id")
        return Identity(session, agent, headers.get("x-claude-code-parent-agent-id"))
    codex = _metadata(headers.get(_CODEX))
    for own, parents in _SESSIONS:
        if session := headers.get(own):
            parent = headers.get(parents) or _string(codex, "parent_thread_id")
            return Identity(session, None, parent, _string(codex, "agent_name"))
    session = _string(codex, "thread_id") or _string(codex, "session_id")
    parent = _string(codex, "parent_thread_id")
    return Identity(session, None, parent, _string(codex, "agent_name"))


def _metadata(text: str | None) -> Json:
    try:
        value = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _string(value: Json, name: str) -> str | None:
    found = value.get(name)
    return found if isinstance(found, str) and found else None


def retry_count(call: ModelCall) -> int:
    """The number of earlier attempts that the SDK reports."""
    value = next((v for name, v in call.headers if name == "x-stainless-retry-count"), "0")
    return int(value) if value.isascii() and value.isdigit() else 0
