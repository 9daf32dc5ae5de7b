"""Find the agent that a text or a tool's argument names, by the ids and names that clients give."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import orjson

from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import parsed
from wiretape.runs.agents.assigner import AgentDraft
from wiretape.runs.caller_headers import Identity
from wiretape.runs.dataflow import TOKEN, strings

# An id in a tool result: `started subagent 5b1c…`, `agentId: a93c…`, `"task_name": "/root/survey"`.
_GIVEN = re.compile(r"(?:id|name|agent|task|session|thread)\b[\"'\s:=>]*([\w./#-]*[\d/][\w./#-]*)", re.IGNORECASE)
_LONG = 6  # characters; a shorter name or a plain word counts only as a whole value
_NAMING = frozenset({"name", "task_name", "agent_name", "id", "agent_id", "subagent_id", "session_id"})


class AgentNames:
    """Agents by name. A name of two agents identifies neither."""

    def __init__(self, agents: Iterable[AgentDraft], identities: Mapping[int, Identity]) -> None:
        self._whole: dict[str, AgentDraft | None] = {}
        for agent in agents:
            for name in dict.fromkeys(_names_of(agent, identities[agent.first_call.number])):
                self._whole[name] = agent if self._whole.get(name, agent) is agent else None

    def called(self, name: str) -> AgentDraft | None:
        """The agent with this name."""
        return self._whole.get(name.strip())

    def addressed(self, arguments: str) -> AgentDraft | None:
        """The agent whose name is a whole value in a tool's arguments."""
        return next((found for value in strings(parsed(arguments)) if (found := self._whole.get(value))), None)

    def named_in(self, text: str) -> list[AgentDraft]:
        """The agents whose ids are in a text, in the order of their first mention."""
        if not self._whole:
            return []
        tokens = (token.strip("./-#") for token in TOKEN.findall(text))
        ids = (token for token in tokens if len(token) >= _LONG and not token.isalpha())
        found = (self._whole.get(token) or self._whole.get(f"/{token}") for token in ids)
        return list(dict.fromkeys(agent for agent in found if agent is not None))


def _names_of(agent: AgentDraft, who: Identity) -> Iterator[str]:
    """The names of an agent: in headers, and in the arguments and result of the tool that started it."""
    if who.name is not None:
        yield who.name
        yield who.name.rpartition("/")[2]
    yield from (own for own in (who.agent or who.session,) if own is not None)
    use = agent.use
    if use is None:
        return
    if use.call.id is not None and use.agent == agent.number:
        yield use.call.id
    yield from named_by(use.call.arguments)
    if use.result is not None:
        yield from (name for name in _GIVEN.findall(use.result.text) if len(name) >= _LONG)


def named_by(arguments: str) -> Iterator[str]:
    """Names that a tool call gives the agent that it starts."""
    value: Json = parsed(arguments)
    if isinstance(value, dict):
        yield from (name for key, name in value.items() if key in _NAMING and isinstance(name, str) and name)


def rows(text: str) -> Iterator[tuple[str, str]]:
    """The agents in a list: (id, state). It is JSON, or lines such as `ID [running] — label`."""
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        yield from ((found[1], found[2].strip()) for found in _LINE.finditer(text))
        return
    yield from _objects(value)


_LINE = re.compile(r"^[^\S\n]*+(?:[-*]\s++)?(\S++)\s++\[([^\]\n]+)\]", re.MULTILINE)
_IDS = ("agent_id", "subagent_id", "task_id", "id", "session_id", "agent_name", "name")
_STATES = ("agent_status", "status", "state")


def _objects(value: Json) -> Iterator[tuple[str, str]]:
    left = [value]  # no recursion: lists may be nested deeply
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += reversed(one)
        if not isinstance(one, dict):
            continue
        name = next((one[key] for key in _IDS if isinstance(one.get(key), str)), None)
        state = next((one[key] for key in _STATES if one.get(key)), None)
        if name is not None and state is not None:
            yield name, _state(state)
        else:
            left += reversed(one.values())


def _state(state: Json) -> str:
    return state if isinstance(state, str) else next(iter(state), "") if isinstance(state, dict) else str(state)
