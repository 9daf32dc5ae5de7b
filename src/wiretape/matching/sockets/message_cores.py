"""What two messages of a WebSocket must have in common to be alike, as a few bytes that are compared at once.

To find where two messages differ takes as long as to mask a part of them, and a connection may have hundreds that wait.
What is taken out here is more than what may differ: messages with one core may still be apart, those with two are.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from wiretape.compare.canonical import canonical
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import LEFT_OUT, loose
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import rebuilt
from wiretape.wire.base import Volatile


def core(value: Json, volatile: Volatile, masker: Masker) -> bytes:
    """Different for messages that no tier takes for alike; it says nothing of a recorded one with a placeholder."""
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if name not in volatile.settings}
    bare = rebuilt(value, lambda _, leaf: leaf, _without({*LEFT_OUT, *(path[-1] for path in volatile.nested)}))
    return blake2b(canonical(masker.value(loose(bare))), digest_size=16).digest()


def _without(names: set[str]) -> Callable[[JsonObject], JsonObject]:
    def kept(members: JsonObject) -> JsonObject:
        return {name: item for name, item in members.items() if name not in names}

    return kept
