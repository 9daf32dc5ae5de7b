"""Find side calls: titles, summaries, routers, token counts. In doubt, a call is not a side call."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wiretape.model.call import ModelCall
from wiretape.runs.agent_identity import same_system, system_text
from wiretape.runs.caller_headers import Identity
from wiretape.runs.threads import ThreadDraft, ThreadPlace, failed
from wiretape.runs.user_text import last_words, side_call_purpose, user_words

_BESIDE = 8  # calls between a side call and the call that it accompanies, at most
_PURPOSES = (
    ("title", re.compile(r"\btitles?\b|标题|\btopic\b", re.IGNORECASE)),
    ("summary", re.compile(r"\bsummar(?:y|i[sz]e|i[sz]ing)\b|总结|摘要", re.IGNORECASE)),
    ("router", re.compile(r"\brout(?:e|er|ing)\b|\bclassif(?:y|ier)\b|complexity", re.IGNORECASE)),
    ("suggestion", re.compile(r"\bsuggest(?:ion|ions)?\b|\bfollow-?ups?\b", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class SideCall:
    """A side call: the call that it accompanies, and its likely purpose. `plain`: its text states the purpose."""

    accompanies: int | None
    detail: str
    plain: bool = False


def purpose(call: ModelCall) -> str | None:
    """The likely purpose of a call without tools, by its texts."""
    said = system_text(call.request)[:2000] or "\n".join(user_words(m) for m in call.request.messages)[:2000]
    return next((name for name, pattern in _PURPOSES if pattern.search(said)), None)


def find_side_calls(
    calls: Sequence[ModelCall],
    links: Mapping[int, ThreadPlace],
    identities: Mapping[int, Identity],
    drafts: Sequence[ThreadDraft],
) -> dict[int, SideCall]:
    """The side calls by call number. Calls that are not inferences are always side calls."""
    found = _others(calls, identities)
    place = {call.number: index for index, call in enumerate(calls)}
    for draft in drafts:
        index = place[draft.calls[0]]
        call = calls[index]
        alone = len(draft.calls) == 1 and links[call.number].relation in ("first", "fork")
        requested = side_call_purpose(call.request.messages)
        if alone and requested is not None:
            found[call.number] = SideCall(draft.from_call, requested, True)
        elif not alone or call.request.tools or call.tool_calls:
            continue
        elif (main := _main(call, calls[max(0, index - _BESIDE) : index + _BESIDE + 1], identities)) is not None:
            named = purpose(call)
            detail = named if named is not None else "one request without tools"
            found[call.number] = SideCall(main.number, detail, named == "title")
    return found


def _main(call: ModelCall, near: Sequence[ModelCall], identities: Mapping[int, Identity]) -> ModelCall | None:
    """The nearest call of an agent that a single call without tools accompanies."""
    able = [other for other in near if other.request.tools and other.kind == "inference"]
    return next((other for other in _closest(able, call) if _accompanies(call, other, identities)), None)


_KINDS = {
    "token_count": "token count",
    "embedding": "embedding",
    "rerank": "rerank",
    "moderation": "moderation",
    "prewarm": "prewarm",
    "completion": "completion",
    "decision": "decision",
}


def _closest(near: Sequence[ModelCall], call: ModelCall) -> list[ModelCall]:
    return sorted(near, key=lambda other: abs(other.number - call.number))


def _others(calls: Sequence[ModelCall], identities: Mapping[int, Identity]) -> dict[int, SideCall]:
    """Calls that are not inferences. Each accompanies the client's inference before it, else the next one."""
    inferences: dict[object, list[int]] = {}
    for call in calls:
        if call.kind == "inference":
            inferences.setdefault(identities[call.number].key, []).append(call.number)
    found: dict[int, SideCall] = {}
    for call in calls:
        if call.kind != "inference":
            akin = inferences.get(identities[call.number].key, [])
            place = bisect_left(akin, call.number)
            accompanies = akin[max(place - 1, 0)] if akin else None
            found[call.number] = SideCall(accompanies, _KINDS[call.kind], True)
    return found


def _accompanies(call: ModelCall, main: ModelCall, identities: Mapping[int, Identity]) -> bool:
    """Whether a single call without tools accompanies a call of an agent with tools."""
    if same_system(call.request, main.request) and system_text(call.request):
        return False
    ours, theirs = identities[call.number].key, identities[main.number].key
    if ours is not None and ours == theirs:
        return True
    if ours is not None and theirs is not None:
        return False
    requested = last_words(main.request.messages)
    if not requested or purpose(call) is None or failed(call):
        return False  # probably another agent
    return any(requested in user_words(message) for message in call.request.messages)
