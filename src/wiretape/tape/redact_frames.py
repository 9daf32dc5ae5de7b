"""Takes secrets out of a stream, also where one is split over frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wiretape.tape.redact import Redactor


def redact_frames(redactor: Redactor, frames: Sequence[bytes]) -> tuple[Sequence[bytes], tuple[int, ...]]:
    made = [redactor.data(frame) for frame in frames]
    rewritten = tuple(i for i, (a, b) in enumerate(zip(made, frames, strict=True)) if a is not b)
    return (made, rewritten) if rewritten else (frames, ())
