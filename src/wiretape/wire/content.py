"""Builds a `Message` block by block, and reads content parts that several formats share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from wiretape.model.call import Block, Control, Media, Message, Reasoning, Text, ToolCall, Unknown
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import dumps, is_empty, items, obj, string

MARKERS = frozenset({"cache_control", "cachePoint", "prompt_cache_breakpoint"})
_MEDIA = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "output_image": "image",
    "input_audio": "audio",
    "audio": "audio",
    "output_audio": "audio",
    "audio_url": "audio",
    "video": "video",
    "video_url": "video",
    "input_video": "video",
    "file": "file",
    "input_file": "file",
    "file_url": "file",
    "document": "document",
    "document_url": "document",
    "search_result": "search_result",
    "container_upload": "file",
}
# Items and blocks of Responses, Messages and Converse that have no content of their own.
_CONTROLS = frozenset(
    {"compaction", "compaction_trigger", "item_reference", "additional_tools", "configuration_update"}
    | {"mcp_list_tools", "mcp_tool_listing", "mcp_approval_request", "mcp_approval_response"}
    | {"tool_addition", "tool_removal", "tool_reference", "toolAddition", "toolRemoval", "fallback"}
)
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "summary_text": "text", "refusal": "refusal"}


class MessageBuilder:
    """Collects blocks with their paths and the members outside blocks, and notes cache markers."""

    __slots__ = ("_blocks", "_extra", "_paths", "marked")

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._paths: list[str] = []
        self._extra: list[tuple[str, Json]] = []
        self.marked = False

    def add(self, block: Block, path: str) -> None:
        self._blocks.append(block)
        self._paths.append(path)

    def text(self, text: Json, path: str, refusal: bool = False) -> None:
        """Add a text block, unless the text is empty."""
        if isinstance(text, str) and text:
            self.add(Text(text, refusal), path)

    def rest(self, raw: JsonObject, known: Iterable[str], prefix: str = "") -> None:
        """Keep the members that no block carries, without empty values. Cache markers only set `marked`."""
        for key, value in raw.items():
            if key in known:
                continue
            if key in MARKERS:
                self.marked = self.marked or not is_empty(value)
            elif not is_empty(value):
                self._extra.append((prefix + key, value))

    def host(self, hosted: bool) -> None:
        """Mark the tool calls collected so far as run by the provider."""
        if hosted:
            self._blocks = [replace(b, kind="server") if isinstance(b, ToolCall) else b for b in self._blocks]

    def extra(self, name: str, value: Json) -> None:
        self._extra.append((name, value))

    def build(self, role: str) -> Message:
        return Message(role, tuple(self._blocks), tuple(self._paths), tuple(self._extra), self.marked)


def add_part(into: MessageBuilder, part: Json, path: str) -> None:
    """Add a content part of Chat Completions, Responses or a similar format."""
    if isinstance(part, str):
        into.text(part, path)
        return
    if not isinstance(part, dict):
        into.add(Unknown(type(part).__name__, part), path)
        return
    kind = part.get("type")
    kind = kind if isinstance(kind, str) else "text" if isinstance(part.get("text"), str) else ""
    member = _TEXTS.get(kind)
    if member is not None and isinstance(part.get(member), str):
        into.text(part[member], f"{path}.{member}", refusal=kind == "refusal")
        into.rest(part, ("type", member, "logprobs"), f"{path[1:]}.")
    elif kind == "thinking":
        _add_thinking(into, part, path)
    else:
        into.marked = into.marked or any(not is_empty(part.get(m)) for m in MARKERS)
        into.add(kept_block(kind, part), path)


def kept_block(kind: str, raw: JsonObject) -> Media | Control | Unknown:
    """Return a block that keeps its JSON unchanged."""
    if kind in _MEDIA:
        return Media(_MEDIA[kind], raw)
    return Control(kind, raw) if kind in _CONTROLS else Unknown(kind, raw)


def _add_thinking(into: MessageBuilder, part: JsonObject, path: str) -> None:
    """Add Mistral's `{type: thinking, thinking: [{type: text, text}]}`; `thinking` may also be a string."""
    thinking = part.get("thinking")
    if isinstance(thinking, str):
        into.add(Reasoning(thinking, opaque=string(part.get("signature"))), f"{path}.thinking")
        return
    for n, piece in enumerate(items(thinking)):
        text = string(obj(piece).get("text"))
        if text:
            into.add(Reasoning(text), f"{path}.thinking[{n}].text")
        elif not is_empty(piece) and obj(piece).get("type") != "text":
            into.add(Unknown(str(obj(piece).get("type", "thinking")), piece), f"{path}.thinking[{n}]")


def result_text(content: Json, path: str) -> tuple[str, tuple[Json, ...], str]:
    """Return the text of a tool result, its other parts, and the path of the text."""
    if isinstance(content, str):
        return content, (), path
    if content is None:
        return "", (), path
    if not isinstance(content, list):
        return dumps(content), (), path
    texts: list[str] = []
    others: list[Json] = []
    where: list[str] = []
    for n, part in enumerate(content):
        text = part if isinstance(part, str) else obj(part).get("text")
        if isinstance(text, str):
            texts.append(text)
            where.append(f"{path}[{n}]" if isinstance(part, str) else f"{path}[{n}].text")
        else:
            others.append(part)
    return "\n".join(texts), tuple(others), where[0] if len(where) == 1 else path
