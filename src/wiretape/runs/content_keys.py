"""Keys of message content, by which histories are compared.

Clients resend a history with small changes: other ids, cache markers, no reasoning, arguments with another spelling, a
string instead of a list of one part. A message is reduced to *atoms* without all this; equal atoms get equal numbers.
System messages have none: they contain clocks, and `agent_identity` compares them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

import orjson

from wiretape.model import jsonwalk
from wiretape.model.call import Block, Control, Media, Message, Reasoning, Text, ToolCall, ToolResult, Unknown
from wiretape.model.jsonvalue import Json
from wiretape.runs.user_text import words

Atom: TypeAlias = tuple[str, ...]
_CALLS_AS_TEXT = "Calling tools:\n"
_MOVING = frozenset({"cachecontrol", "thoughtsignature"})


def canonical(arguments: str) -> str:
    """Tool arguments in one spelling: sorted JSON, or stripped text."""
    try:
        return spelled(orjson.loads(arguments)) if arguments else "{}"
    except orjson.JSONDecodeError:
        return arguments.strip()


def spelled(value: Json) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, orjson.JSONEncodeError):  # integers beyond 64 bits, or nested too deeply
        return "".join(jsonwalk.spelled(value, ordered=True))


class ContentKeys:
    """The numbers of atoms. Each message object is read once."""

    __slots__ = ("_atoms", "_equal", "_seen")

    def __init__(self) -> None:
        self._atoms: dict[Atom, int] = {}
        self._seen: dict[int, tuple[Message, tuple[int, ...]]] = {}
        self._equal: dict[tuple[str, tuple[Block, ...]], tuple[int, ...]] = {}

    def of(self, message: Message) -> tuple[int, ...]:
        """The numbers of a message's atoms; empty if it is not compared."""
        found = self._seen.get(id(message))
        if found is None:
            found = self._seen[id(message)] = (message, self._read(message))
        return found[1]

    def _read(self, message: Message) -> tuple[int, ...]:
        """The numbers of a message; an equal message is only looked up."""
        key = (message.role, message.blocks)
        try:
            known = self._equal.get(key)
        except TypeError:  # a block with raw JSON is not hashable
            return tuple(self._number(atom) for atom in atoms(message))
        if known is None:
            known = self._equal[key] = tuple(self._number(atom) for atom in atoms(message))
        return known

    def of_all(self, messages: tuple[Message, ...]) -> tuple[int, ...]:
        return tuple(number for message in messages for number in self.of(message))

    def _number(self, atom: Atom) -> int:
        return self._atoms.setdefault(atom, len(self._atoms))


def atoms(message: Message) -> Iterator[Atom]:
    """The parts of a message that must be equal in equal histories; adjacent texts are joined."""
    if message.role == "system":
        return
    texts: list[str] = []
    for block in message.blocks:
        if isinstance(block, Text):
            texts.append(block.text)
            continue
        atom = _atom(block)
        if atom is not None:
            yield from _text(message.role, texts)
            texts = []
            yield atom
    yield from _text(message.role, texts)


def _text(role: str, texts: list[str]) -> Iterator[Atom]:
    text = "".join(texts).strip() if role == "assistant" else words("\n".join(texts))
    call_atoms: tuple[Atom, ...] = ()
    if role == "assistant" and _CALLS_AS_TEXT in text:
        text, call_atoms = _calls_as_text(text)
    if text:
        yield ("text", role, text)
    yield from call_atoms


def _calls_as_text(text: str) -> tuple[str, tuple[Atom, ...]]:
    """The text before tool calls that a framework sends back as Python text, and the calls."""
    before, _, after = text.rpartition(_CALLS_AS_TEXT)
    try:
        calls = ast.literal_eval(after.strip())
        functions = [call["function"] for call in calls]
        call_atoms = tuple(("call", str(f["name"]), _respelled(f["arguments"])) for f in functions)
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        return text, ()
    return before.strip(), call_atoms


def _respelled(arguments: Json) -> str:
    return canonical(arguments) if isinstance(arguments, str) else spelled(arguments)


def _atom(block: Block) -> Atom | None:
    match block:
        case ToolCall(kind="server") | ToolResult(kind="server"):  # clients may omit tools that the provider ran
            return None
        case ToolCall():
            return ("call", block.name, canonical(block.arguments))
        case ToolResult():
            return ("result", block.text.strip(), *(spelled(part) for part in block.parts))
        case Media():
            return ("media", block.kind, spelled(_plain(block.raw)))
        case Control():
            return ("control", block.kind)
        case Unknown():
            return ("unknown", block.type)
        case Reasoning() | Text():
            return None


def _plain(value: Json, depth: int = 4) -> Json:
    """A wire's own block without volatile members, and with member names in one spelling (Gemini has two)."""
    if not isinstance(value, dict) or not depth:
        return value
    named = {key.replace("_", "").lower(): member for key, member in value.items()}
    return {key: _plain(member, depth - 1) for key, member in named.items() if key not in _MOVING}
