"""How a history grows in the Messages API: the answer's blocks as they are, signatures too; results lead the next turn.

An answer that only paused (`pause_turn`) is handed back alone: the model goes on from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from wiretape.model.call import ToolResult
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.anthropic.stream import AnthropicAssembly
from wiretape.wire.lenient import is_empty, items, obj
from wiretape.wire.next_request import ResultsLead, Since, assembled, text_and_parts

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_DIRECT = {"type": "direct"}


class AnthropicGrower(ResultsLead):
    def answer(self, response: Response) -> JsonObject:
        return assembled(response, AnthropicAssembly())

    def parts(self, answer: JsonObject, like: JsonObject | None) -> list[Json]:
        content = answer.get("content")
        blocks = [self.words(content)] if isinstance(content, str) else items(content)
        theirs = {obj(block).get("type") for block in items(obj(like).get("content"))}
        thinks = like is None or not _THOUGHTS.isdisjoint(theirs)
        return [_block(block) for block in blocks if thinks or obj(block).get("type") not in _THOUGHTS]

    def result(self, result: ToolResult) -> JsonObject:
        content: Json = result.text
        if result.parts:
            content = text_and_parts(result, self.words(result.text)) if result.text else list(result.parts)
        made: JsonObject = {"type": "tool_result", "tool_use_id": result.id, "content": content}
        return {**made, "is_error": True} if result.is_error else made

    def words(self, user: str) -> JsonObject:
        return {"type": "text", "text": user}

    def said(
        self, results: Sequence[ToolResult], user: str | None, answer: JsonObject, later: Sequence[JsonObject]
    ) -> list[Json]:
        if user is not None and not results:
            return [{"role": "user", "content": user}]
        return super().said(results, user, answer, later)

    def grow(self, body: JsonObject, since: Since) -> JsonObject:
        thread = obj(body.get("thread"))
        if "previous_message_id" in thread and since.answer.get("id"):
            body = {**body, "thread": {**thread, "previous_message_id": since.answer["id"]}}
        return super().grow(body, since)

    def held(self, body: JsonObject) -> JsonObject:
        return {"thread": body["thread"]} if "previous_message_id" in obj(body.get("thread")) else {}


def _block(raw: Json) -> Json:
    """A block without what an answer only says for the record."""
    if not isinstance(raw, dict):
        return raw
    empty = ("citations", "caller") if raw.get("caller") in (None, _DIRECT) else ("citations",)
    return {k: v for k, v in raw.items() if k not in empty or (not is_empty(v) and v != _DIRECT)}
