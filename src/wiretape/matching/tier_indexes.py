"""The indexes of the recorded requests, one for each tier. Each is built when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from wiretape.compare.difference import Tier
from wiretape.matching.async_messages.detect import DetectedThread, asks_for_nothing, detect_threads
from wiretape.matching.async_messages.history import HistoryParts
from wiretape.matching.async_messages.match import AsyncIndex
from wiretape.matching.lookup.index import CallIndex, ExactIndex, Index
from wiretape.matching.lookup.position import ThreadPositions
from wiretape.matching.lookup.templates import NormalizedMessages, TemplateTable
from wiretape.matching.misses.miss_text import thread_labels
from wiretape.matching.recorded import RecordedExchange, ReplaySource
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode


@dataclass(eq=False)
class TierIndexes:
    """The indexes of a session. `loosest`: the loosest tier allowed."""

    recording: ReplaySource
    loosest: Tier
    _shapes: NormalizedMessages = field(default_factory=NormalizedMessages)

    def __iter__(self) -> Iterator[tuple[Tier, Index]]:
        """The tiers up to `loosest` with their indexes, strictest first."""
        yield Tier.EXACT, self.exact
        if self.loosest >= Tier.NORMALIZED:
            yield Tier.NORMALIZED, self.normalized
        if self.loosest >= Tier.MASKED:
            yield Tier.MASKED, self.masked

    @property
    def loosest_index(self) -> CallIndex:
        """The index in which the nearest call of a miss is searched."""
        return self.masked if self.loosest >= Tier.MASKED else self.normalized

    @cached_property
    def exact(self) -> ExactIndex:
        index = ExactIndex(self.recording.played, self.recording.prefixes)
        self._learn(index)
        return index

    @cached_property
    def normalized(self) -> CallIndex:
        index = CallIndex(self.recording.played, TemplateTable(), self._shapes, self.recording.memo)
        self._learn(index)
        return index

    @cached_property
    def masked(self) -> CallIndex:
        level = TemplateTable(self.recording.masker.value, finer=self.normalized.level)
        index = CallIndex(self.recording.played, level, self._shapes, self.recording.memo)
        self._learn(index)
        return index

    @cached_property
    def moved(self) -> AsyncIndex:
        memo, pieces = self.recording.memo, HistoryParts()
        detected: list[DetectedThread] = []
        text_only: set[int] = set()
        for tape, run in enumerate(self.runs):
            here = {one.exchange.number: one for one in self.recording.exchanges if one.tape == tape}
            detected += detect_threads(run, here, pieces, memo)
            for step in run.steps:
                response, recorded = step.call.response, here.get(step.call.exchange)
                if response is not None and recorded is not None and asks_for_nothing(response.messages):
                    text_only.add(recorded.order)
        return AsyncIndex(detected, self.masked, pieces, memo, self.recording.played, text_only)

    @cached_property
    def positions(self) -> ThreadPositions:
        of = self.recording
        return ThreadPositions(of.exchanges, of.played, of.masker.value, self._shapes, of.memo, lambda: self.runs)

    @cached_property
    def runs(self) -> list[Run]:
        """The run of each tape."""
        return [build_run(decode(tape.exchanges, self.recording.registry)) for tape in self.recording.tapes]

    def label(self, recorded: RecordedExchange) -> str:
        """The call and thread of a recorded exchange in words; empty if unknown."""
        try:
            return self._labels[recorded.tape].get(recorded.exchange.number, "")
        except Exception:  # a label is optional: an error here must not hide the miss
            return ""

    @cached_property
    def _labels(self) -> list[dict[int, str]]:
        return [thread_labels(run) for run in self.runs]

    def _learn(self, index: Index) -> None:
        for recorded in self.recording.exchanges:
            index.learn(recorded.probe, recorded.order)
        index.trie.forget_recent()
