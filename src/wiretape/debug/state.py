"""The state of a debugger: its run, the position in it, breakpoints, checkpoints and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from wiretape.debug.annotated_run import AnnotatedRun
from wiretape.debug.annotations import Annotations, Note, SavesNotes
from wiretape.debug.breakpoints import Breakpoints
from wiretape.debug.detail import Detail, detail
from wiretape.debug.outline import Key, Mark, Node, marks, outline
from wiretape.debug.replies import Arrival
from wiretape.debug.timeline import Stop, Timeline
from wiretape.errors import UsageError
from wiretape.model.run import Run

if TYPE_CHECKING:  # a debugger of a tape does not load the modules of live programs
    from wiretape.debug.live.program import LiveProgram

Move: TypeAlias = Callable[[Timeline, int], int]


class DebuggerState:
    """The state that commands read and change. Not thread-safe."""

    def __init__(
        self,
        run: Run,
        annotations: Annotations | None = None,
        notes: Sequence[Note] = (),
        save_notes: SavesNotes | None = None,
    ) -> None:
        self.annotated = AnnotatedRun(run, annotations or Annotations())
        self.at = 0  # index of the current stop in the timeline
        self.frame = 0  # the selected frame of the backtrace; 0 is the innermost
        self.breakpoints = Breakpoints()
        self.checkpoints: dict[int, Stop] = {}
        self.notes: list[Note] = list(notes)
        self.save_notes = save_notes
        self.history: list[str] = []
        self.live: LiveProgram | None = None  # the program whose calls make this run, if it was started here
        self.judged = True  # False: details and marks leave out findings, verdicts and drift
        self.sought: str | None = None  # the last search
        self.listed: tuple[int, int] | None = None  # the range of calls that `list` showed last
        self._outline: tuple[Node, ...] | None = None

    # -- where it stands -------------------------------------------------------------------------------------------

    @property
    def timeline(self) -> Timeline:
        return self.annotated.timeline

    @property
    def here(self) -> Stop:
        """The current stop."""
        return self.timeline.stops[self.at]

    @property
    def selected(self) -> Stop:
        """The stop that `print`, `context` and `diff` read: the current one, or that of the frame chosen with `up`."""
        number = self.here.call
        if number is None or self.frame == 0:
            return self.here
        frame = self.timeline.frames(number)[self.frame]
        return Stop("tool", frame.call, frame.tool.index) if frame.tool is not None else Stop("answer", frame.call)

    def detail(self, stop: Stop | None = None) -> Detail:
        """The detail of a stop, by default the selected one. Raises UsageError at the ends of the tape."""
        running = self.live is not None and self.live.exit_code is None
        stop = stop or self.selected
        return detail(self.annotated, stop, self.notes, self.breakpoints, judged=self.judged, running=running)

    def outline(self) -> tuple[Node, ...]:
        """The tree of turns, agents, calls and tool uses. It is cached; `marks` changes with every move."""
        if self._outline is None:
            self._outline = outline(self.timeline)
        return self._outline

    def marks(self) -> Mapping[Key, frozenset[Mark]]:
        """The marks of the outline's nodes: current, breakpoint, note, finding, error."""
        return marks(self.annotated, self.here, self.breakpoints, self.notes, judged=self.judged)

    def judge(self) -> None:
        """Compute findings, verdicts and drift. May run in a thread while `judged` is False."""
        self.annotated.all_findings()
        if self.timeline.calls:
            stop = Stop("answer", self.timeline.calls[0])
            self.annotated.cache_verdict(self.timeline.calls[0])
            self.annotated.drift(stop)

    # -- moving ----------------------------------------------------------------------------------------------------

    def visit(self, stop: Stop) -> Arrival:
        """Go to a stop; breakpoints on the way are ignored. Raises UsageError if the run does not have the stop."""
        place = self.timeline.find(stop)
        if place is None:
            raise UsageError(f"{self.annotated.annotations.name} has no stop {stop}")
        return self.arrive(place)

    def arrive(self, place: int, returned: tuple[str, str] | None = None) -> Arrival:
        """Make a stop the current one, count its breakpoint hits, and describe it."""
        self.at, self.frame, self.listed = place, 0, None
        stop = self.here
        hits = tuple(self.breakpoints.hits(self.annotated, stop))
        for hit in hits:
            point = self.breakpoints.change(hit.point.number, hits=hit.point.hits + 1)
            if point.once:
                self.breakpoints.remove(point.number)
        return Arrival(self.detail() if stop.call is not None else None, hits, returned, stop.phase)

    def stops_here(self, place: int) -> bool:
        """Whether a breakpoint or watchpoint stops the run at an index."""
        return bool(self.breakpoints.points) and self.breakpoints.hit_at(self.annotated, self.timeline.stops[place])

    def travel(self, move: Move) -> int:
        """The index where a move ends: its goal, or the first breakpoint on the way."""
        goal = move(self.timeline, self.at)
        step = 1 if goal > self.at else -1
        return next((place for place in range(self.at + step, goal, step) if self.stops_here(place)), goal)

    def annotate(self, annotations: Annotations) -> None:
        """Replace the annotations."""
        self.annotated = AnnotatedRun(self.timeline.run, annotations)

    def grow(self, run: Run) -> None:
        """Take over a run with more calls. The current stop stays, except that the end moves to the new end."""
        here = self.here
        self.annotated = AnnotatedRun(run, self.annotated.annotations)
        self.breakpoints.clear_cache()
        self._outline = None
        place = self.timeline.find(here)
        self.at = place if place is not None and here.phase != "end" else self.timeline.end
