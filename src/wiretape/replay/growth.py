"""Is a recorded request what its format makes of the request before it? What is left over is the program's own.

A program adds to a conversation what no wire format implies: the user's words, reminders, another prompt. That is
*given*: taken from the recorded request and said so. What a format does imply (the history, the answer, the results
of tools) and the recorded request has otherwise is a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from wiretape.model.call import CallRequest, Message, Reasoning
from wiretape.model.http import JsonBody, Request
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.replay.beginnings import common_start
from wiretape.replay.canonical import canonical
from wiretape.replay.compare import differences
from wiretape.replay.loosen import message_shape, settings_template, tool_template
from wiretape.replay.mask import Masker
from wiretape.replay.rerun_plan import Grounds
from wiretape.replay.values import ABSENT, Difference, Tier
from wiretape.wire.base import Memo, WireFormat
from wiretape.wire.growing import Grower, named, replaced

GivenKind: TypeAlias = Literal[
    "message",  # a whole item: the user's words, a reminder
    "beside",  # blocks beside those that the format implies, such as a text after tool results
    "prompt",  # the system prompt is another one
    "tools",  # other tools are offered
    "setting",  # any other member of the request
    "left out",  # the program does not hand back what the model said (its thoughts, say)
    "member",  # a member of an item that only this program writes
]
_CLIENT: Final = frozenset({"user", "system", "tool"})  # whose items a program adds to


@dataclass(frozen=True, slots=True)
class Given:
    """Something that the program decided. `where` is its place in the recorded request."""

    kind: GivenKind
    where: str
    value: Json


@dataclass(frozen=True, slots=True)
class Grown:
    """A grown request beside the recorded one. `tier`: how alike they are where nothing differs."""

    tier: Tier
    differences: tuple[Difference, ...] = ()
    given: tuple[Given, ...] = ()
    tail: tuple[Json, ...] = ()  # items that the program added
    beside: tuple[Json, ...] = ()  # parts that it added to the last item


class _Item:
    """One item of a history: decoded, where it stands, as it stands there; without what may change, if asked for."""

    __slots__ = ("_shape", "message", "raw", "where")

    def __init__(self, message: Message, where: str, raw: Json) -> None:
        self.message = message
        self.where = where
        self.raw = raw
        self._shape: _Shape | None = None

    @property
    def shape(self) -> _Shape:
        if self._shape is None:
            self._shape = _shape(self.message)
        return self._shape

    @property
    def role(self) -> str:
        return self.message.role

    @property
    def blocks(self) -> list[Json]:
        return self.shape.blocks

    @property
    def only_aside(self) -> bool:
        """Nothing but thoughts, or what the provider ran itself: clients need not hand it back."""
        return all(block[0] == "reasoning" or block[-1] == "server" for block in self.blocks)


class Growth:
    """Compares grown requests with recorded ones of the same format."""

    def __init__(self, form: WireFormat, grower: Grower, masker: Masker, memo: Memo) -> None:
        self._form = form
        self._grower = grower
        self._masker = masker
        self._memo = memo

    def compare(self, grown: JsonObject, recorded: JsonObject, request: Request) -> Grown:
        """`request`: the recorded one, for what stands beside its body."""
        ours = self._form.decode_request(replace(request, body=JsonBody(grown)), self._memo)
        theirs = self._form.decode_request(replace(request, body=JsonBody(recorded)), self._memo)
        walk = _Walk(self._masker)
        path = self._grower.history(recorded)
        alike = common_start(named(grown, path), named(recorded, path))  # as the same objects, and most are
        walk.along(self._items(grown, ours, alike), self._items(recorded, theirs, alike))
        walk.given += self._around(ours, theirs, recorded)
        tail, beside = tuple(walk.tail), tuple(walk.beside)
        return Grown(walk.tier, tuple(walk.differences), tuple(walk.given), tail, beside)

    def _items(self, body: JsonObject, call: CallRequest, alike: int) -> list[_Item]:
        """The items of a history from the first that may differ on."""
        path = self._grower.history(body)
        name = ".".join(path)
        found = []
        raw = named(body, path)
        starts = [start for start, segment in call.segments if segment == name]
        if not starts:
            return []
        later = [start for start, _ in call.segments if start > starts[0]]
        for index in range(starts[0] + alike, min(later, default=len(call.messages))):
            message = call.messages[index]
            place = index - starts[0]
            found.append(_Item(message, call.path(index), raw[place] if place < len(raw) else _scalar(body, path)))
        return found

    def _around(self, ours: CallRequest, theirs: CallRequest, recorded: JsonObject) -> Iterator[Given]:
        """What stands around the history: prompts, tools, settings. Every request states it anew."""
        name = ".".join(self._grower.history(recorded))
        one, other = _prompts(ours, name), _prompts(theirs, name)
        if not self._alike([message_shape(m).template for m in one], [message_shape(m).template for m in other]):
            yield Given("prompt", next((s for _, s in theirs.segments if s != name), "system"), None)
        if ours.tools is not theirs.tools and not _same_tools(ours, theirs):
            yield Given("tools", "tools", [tool.name for tool in theirs.tools])
        if ours.model != theirs.model:
            yield Given("setting", "model", theirs.model)
        before = settings_template(ours, self._form.volatile)
        after = settings_template(theirs, self._form.volatile)
        for apart in differences(after, before):
            if not self._alike(apart.recorded, apart.live):
                yield Given("setting", apart.where, None if apart.recorded is ABSENT else apart.recorded)

    def _alike(self, one: Json, other: Json) -> bool:
        if one is ABSENT or other is ABSENT:
            return False
        return one == other or bool(self._masker.value(one) == self._masker.value(other))


class _Walk:
    """Goes along two histories at once."""

    def __init__(self, masker: Masker) -> None:
        self.tier = Tier.EXACT
        self.differences: list[Difference] = []
        self.given: list[Given] = []
        self.tail: list[Json] = []
        self.beside: list[Json] = []
        self._masker = masker
        self._names: dict[str, str] = {}  # our id -> theirs

    def along(self, ours: Sequence[_Item], theirs: Sequence[_Item]) -> None:
        i = j = 0
        while i < len(ours) and j < len(theirs):
            if self._fit(ours[i], theirs[j]):
                i, j = i + 1, j + 1
            elif (run := self._runs_fit(ours, i, theirs, j)) is not None:
                i, j = run
            elif (ahead := self._ahead(ours[i], theirs, j)) is not None:
                for item in theirs[j:ahead]:
                    self._add(item)
                j = ahead
            elif self._is_left_out(ours, i, theirs[j]):
                self.given.append(Given("left out", theirs[j].where, ours[i].raw))
                i += 1
            else:
                self._apart(ours[i], theirs[j])
                i, j = i + 1, j + 1
        for item in ours[i:]:
            if item.only_aside:
                self.given.append(Given("left out", item.where, item.raw))
            else:
                self.differences.append(Difference(item.where, ABSENT, item.raw))
        for item in theirs[j:]:
            self._add(item)

    def _add(self, item: _Item) -> None:
        self.given.append(Given("message", item.where, item.raw))
        self.tail.append(item.raw)

    def _fit(self, one: _Item, other: _Item, look: bool = False) -> bool:
        """Whether two items say the same. `look`: only ask, note nothing."""
        if one.raw is other.raw or canonical(one.raw) == canonical(other.raw):
            return True
        if one.role != other.role or not self._same_ids(one, other):
            return False
        thoughts = self._blocks_fit(one, other)
        if thoughts is None:
            return self._has_more(one, other, look)
        if not look:
            self._note(one, other, thoughts)
        return True

    def _blocks_fit(self, one: _Item, other: _Item) -> list[Json] | None:
        """The thoughts that the recorded item leaves out, where the rest is alike; None where it is not."""
        tier = self._alike(one.blocks, other.blocks)
        left: list[Json] = []
        if tier is None and not any(block[0] == "reasoning" for block in other.blocks):
            kept = [block for block in one.blocks if block[0] != "reasoning"]
            said, _ = _joined(kept, range(len(kept)))
            left = [block for block in one.blocks if block[0] == "reasoning"]
            tier = self._alike(said, other.blocks) if left else None
        if tier is None:
            return None
        self.tier = max(self.tier, tier)
        return left

    def _note(self, one: _Item, other: _Item, thoughts: Sequence[Json]) -> None:
        self.tier = max(self.tier, Tier.NORMALIZED)
        if thoughts:
            self.given.append(Given("left out", other.where, [block[1] for block in thoughts]))
        for name in one.shape.extra.keys() | other.shape.extra.keys():
            if name not in other.shape.extra:
                self.given.append(Given("left out", f"{other.where}.{name.lstrip('.')}", one.shape.extra[name]))
            elif self._alike(one.shape.extra.get(name, ABSENT), other.shape.extra[name]) is None:
                self.given.append(Given("member", f"{other.where}.{name.lstrip('.')}", other.shape.extra[name]))
        self._names.update(zip(one.shape.ids, other.shape.ids, strict=False))

    def _has_more(self, one: _Item, other: _Item, look: bool) -> bool:
        """Whether the recorded item has all that ours has, and more that the client added."""
        if other.role not in _CLIENT or len(other.blocks) <= len(one.blocks):
            return False
        left, extra = list(one.blocks), []
        for position, block in enumerate(other.blocks):
            if left and self._alike([left[0]], [block]) is not None:
                left.pop(0)
            elif block[0] in ("result", "call"):
                return False
            else:
                extra.append(position)
        if left:
            return False
        if not look:
            self._note(one, other, ())
            for number in (number for position in extra for number in other.shape.spans[position]):
                where, raw = _part(other, number)
                self.given.append(Given("beside", where, raw))
                self.beside.append(raw)
        return True

    def _runs_fit(self, ours: Sequence[_Item], i: int, theirs: Sequence[_Item], j: int) -> tuple[int, int] | None:
        """Where both go on after one answer that is put into items differently: a text and its calls apart, say."""
        if ours[i].role != "assistant" or theirs[j].role != "assistant":
            return None
        one, other = _run(ours, i), _run(theirs, j)
        if len(one) == len(other) == 1:
            return None
        said = [_spoken(items) for items in (one, other)]
        tier = self._alike(*said)
        if tier is None:
            return None
        self.tier = max(self.tier, tier)
        return i + len(one), j + len(other)

    def _ahead(self, item: _Item, theirs: Sequence[_Item], j: int) -> int | None:
        """Where our item stands further on: what stands before it is the program's own."""
        for ahead in range(j, len(theirs)):
            if ahead > j and self._fit(item, theirs[ahead], look=True):
                return ahead
        return None

    def _is_left_out(self, ours: Sequence[_Item], i: int, other: _Item) -> bool:
        item = ours[i]
        if not item.only_aside or item.role != "assistant":
            return False
        following = next((later for later in ours[i + 1 :] if not later.only_aside), None)
        return following is None or following.role != other.role or self._fit(following, other, look=True)

    def _apart(self, one: _Item, other: _Item) -> None:
        found = [d for d in differences(other.raw, one.raw, other.where) if not self._is_minor(d)]
        self.differences += found or [Difference(other.where, other.raw, one.raw)]

    def _is_minor(self, apart: Difference) -> bool:
        if apart.recorded is ABSENT or apart.live is ABSENT:
            return False
        return self._alike(apart.recorded, apart.live) is not None

    def _same_ids(self, one: _Item, other: _Item) -> bool:
        if len(one.shape.ids) != len(other.shape.ids):
            return True  # an id more or less is told by what carries it
        return all(
            self._names.get(ours, theirs) == theirs for ours, theirs in zip(one.shape.ids, other.shape.ids, strict=True)
        )

    def _alike(self, one: Json, other: Json) -> Tier | None:
        if one is ABSENT or other is ABSENT:
            return None
        if one == other:
            return Tier.NORMALIZED
        return Tier.MASKED if self._masker.value(one) == self._masker.value(other) else None


def _comparable(block: Json) -> Json:
    """A call or result without its id, which some clients make up, and a result without its tool's name."""
    if block[0] == "call":
        return [block[0], *block[2:]]
    if block[0] == "text" and isinstance(block[1], str):
        return [block[0], block[1].strip(), *block[2:]]  # clients trim answers: some providers ask for it
    return _without_nulls([block[0], *block[3:]] if block[0] == "result" else block)


def _without_nulls(value: Json) -> Json:
    match value:
        case list():
            return [_without_nulls(item) for item in value]
        case dict():
            return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


@dataclass(frozen=True, slots=True)
class _Shape:
    """A message without what may change. `spans`: which of its blocks each of these is made of."""

    blocks: list[Json]
    spans: list[tuple[int, ...]]
    extra: JsonObject
    ids: tuple[str, ...]


def _shape(message: Message) -> _Shape:
    shape = message_shape(message)
    _, blocks, extra = shape.template
    joined, spans = _joined([_comparable(block) for block in blocks], _shown(message))
    return _Shape(joined, spans, extra, shape.ids)


def _shown(message: Message) -> list[int]:
    """Which of a message's blocks have a place in its shape: opaque state that stands alone has none."""
    return [n for n, b in enumerate(message.blocks) if not (isinstance(b, Reasoning) and not b.text)]


def _joined(blocks: Sequence[Json], numbers: Sequence[int]) -> tuple[list[Json], list[tuple[int, ...]]]:
    """Neighbouring texts as one: clients join what a stream gave in pieces, and split what they say themselves."""
    made: list[Json] = []
    spans: list[tuple[int, ...]] = []
    for block, number in zip(blocks, numbers, strict=True):
        if block[0] == "text" and not block[1]:
            continue  # some clients put a blank where a model said nothing
        if made and _both_text(made[-1], block):
            made[-1] = ["text", made[-1][1] + block[1], block[2]]
            spans[-1] = (*spans[-1], number)
        else:
            made.append(block)
            spans.append((number,))
    return made, spans


def _both_text(one: Json, other: Json) -> bool:
    if one[0] != "text" or other[0] != "text" or one[2] != other[2]:
        return False
    return isinstance(one[1], str) and isinstance(other[1], str)


def _run(items: Sequence[_Item], start: int) -> list[_Item]:
    """The neighbouring items of an answer."""
    end = start
    while end < len(items) and items[end].role == "assistant":
        end += 1
    return list(items[start:end])


def _spoken(items: Sequence[_Item]) -> list[Json]:
    """What several items say together, without thoughts and without what the provider ran."""
    blocks = [b for item in items for b in item.blocks if b[0] != "reasoning" and b[-1] != "server"]
    return _joined(blocks, range(len(blocks)))[0]


def _same_tools(ours: CallRequest, theirs: CallRequest) -> bool:
    return list(map(tool_template, ours.tools)) == list(map(tool_template, theirs.tools))


def _prompts(call: CallRequest, name: str) -> list[Message]:
    """The messages that stand outside of the history."""
    found: list[Message] = []
    bounds = [start for start, _ in call.segments] + [len(call.messages)]
    for (start, segment), end in zip(call.segments, bounds[1:], strict=True):
        if segment != name:
            found += call.messages[start:end]
    return found


def _part(item: _Item, position: int) -> tuple[str, Json]:
    """A block's place, and the part of the item that it was made of."""
    paths = item.message.block_paths
    path = paths[position] if position < len(paths) else ""
    value, where = item.raw, ""
    for step in path.replace("[", ".[").split("."):
        inner: Json = None
        if step.startswith("["):
            index = int(step[1:-1])
            inner = value[index] if isinstance(value, list) and index < len(value) else None
        elif step:
            inner = value.get(step) if isinstance(value, dict) else None
        else:
            continue
        if not isinstance(inner, dict | list):
            break
        value, where = inner, where + (step if step.startswith("[") else f".{step}")
        if step.startswith("["):
            break
    return item.where + where, value


def _scalar(body: JsonObject, path: Sequence[str]) -> Json:
    value: Json = body
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def with_given(body: JsonObject, ground: Grounds, grown: Grown) -> JsonObject:
    """Another history with what the program added to the recorded one; prompt, tools and settings are the recorded."""
    path = ground.grower.history(body)
    history = [*named(body, path)]
    last = history[-1] if history else None
    if grown.beside and isinstance(last, dict):
        for member in ("content", "parts"):
            if isinstance(last.get(member), list):
                history[-1] = {**last, member: [*last[member], *grown.beside]}
    made = replaced(ground.body, path, [*history, *grown.tail])
    held = body.get("previous_response_id")
    return {**made, "previous_response_id": held} if held is not None else made
