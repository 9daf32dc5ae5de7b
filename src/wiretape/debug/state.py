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
    """Commands read and change this. Not thread-safe."""

    def __init__(
        self,
        run: Run,
        annotations: Annotations | None = None,
        notes: Sequence[Note] = (),
        save_notes: SavesNotes | None = None,
    ) -> None:
        self.annotated = AnnotatedRun(run, annotations or Annotations())
        self.at = 0  # place on the timeline
        self.frame = 0  # which frame is selected: 0 is where the run stands
        self.breakpoints = Breakpoints()
        self.checkpoints: dict[int, Stop] = {}
        self.notes: list[Note] = list(notes)
        self.save_notes = save_notes
        self.history: list[str] = []
        self.live: LiveProgram | None = None  # the program that makes this run, if it is at work now
        self.judged = True  # False: places and marks are shown without findings, verdicts and drift, which take a while
        self.sought: str | None = None  # what was searched for last
        self.listed: tuple[int, int] | None = None  # the calls that `list` showed last
        self._outline: tuple[Node, ...] | None = None

    # -- where it stands -------------------------------------------------------------------------------------------

    @property
    def timeline(self) -> Timeline:
        return self.annotated.timeline

    @property
    def here(self) -> Stop:
        """Where the run stands."""
        return self.timeline.stops[self.at]

    @property
    def selected(self) -> Stop:
        """What `print` and its kin look at: where the run stands, or the place of the frame that `up` chose."""
        number = self.here.call
        if number is None or self.frame == 0:
            return self.here
        frame = self.timeline.frames(number)[self.frame]
        return Stop("tool", frame.call, frame.tool.index) if frame.tool is not None else Stop("answer", frame.call)

    def detail(self, stop: Stop | None = None) -> Detail:
        """All about a place, by default the selected one. Raises UsageError at the start and the end."""
        goes_on = self.live is not None and self.live.exit_code is None
        place = stop or self.selected
        return detail(self.annotated, place, self.notes, self.breakpoints, judged=self.judged, goes_on=goes_on)

    def outline(self) -> tuple[Node, ...]:
        """The tree of turns, agents, calls and tool uses. Built once; what changes as one walks is in `marks`."""
        if self._outline is None:
            self._outline = outline(self.timeline)
        return self._outline

    def marks(self) -> Mapping[Key, frozenset[Mark]]:
        """The marks of the outline's nodes that have any: current, breakpoint, note, finding, error."""
        return marks(self.annotated, self.here, self.breakpoints, self.notes, judged=self.judged)

    def judge(self) -> None:
        """Find out what others know of the whole run; may be done in a thread, while one walks with `judged` False."""
        self.annotated.all_findings()
        if self.timeline.calls:
            stop = Stop("answer", self.timeline.calls[0])
            self.annotated.cache_verdict(self.timeline.calls[0])
            self.annotated.drifts(stop)

    # -- moving ----------------------------------------------------------------------------------------------------

    def visit(self, stop: Stop) -> Arrival:
        """Go to a place at once, whatever lies between."""
        place = self.timeline.find(stop)
        if place is None:
            raise UsageError(f"there is no such place on {self.annotated.annotations.name}: {stop}")
        return self.arrive(place)

    def arrive(self, place: int, returned: tuple[str, str] | None = None) -> Arrival:
        """Stand at a place, and say what is there."""
        self.at, self.frame, self.listed = place, 0, None
        stop = self.here
        hits = tuple(self.breakpoints.hits(self.annotated, stop))
        for hit in hits:
            point = self.breakpoints.change(hit.point.number, hits=hit.point.hits + 1)
            if point.once:
                self.breakpoints.remove(point.number)
        return Arrival(self.detail() if stop.call is not None else None, hits, returned, stop.phase)

    def stops_here(self, place: int) -> bool:
        """Whether a breakpoint or watchpoint stops a run at a place."""
        return bool(self.breakpoints.points) and self.breakpoints.hit_at(self.annotated, self.timeline.stops[place])

    def travel(self, move: Move) -> int:
        """Where a move leads: to its goal, or to the first place on the way where something stops it."""
        goal = move(self.timeline, self.at)
        step = 1 if goal > self.at else -1
        return next((place for place in range(self.at + step, goal, step) if self.stops_here(place)), goal)

    def know(self, annotations: Annotations) -> None:
        """What others know of this run."""
        self.annotated = AnnotatedRun(self.timeline.run, annotations)

    def grow(self, run: Run) -> None:
        """The run has more calls than before (it is being recorded). Stands where it stood."""
        here = self.here
        self.annotated = AnnotatedRun(run, self.annotated.annotations)
        self.breakpoints.forget()
        self._outline = None
        place = self.timeline.find(here)
        self.at = place if place is not None and here.phase != "end" else self.timeline.end
