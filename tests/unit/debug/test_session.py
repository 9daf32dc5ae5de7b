"""The one door: whatever is typed, it answers, and its state stays whole."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from tests.support.debugging import debugger, last, runs
from tests.support.views import shown

from wiretape.debug.annotations import Annotations, CacheVerdict, CallFinding, Note
from wiretape.debug.commands.registry import COMMANDS
from wiretape.debug.outline import Node, key_of
from wiretape.debug.session import Debugger
from wiretape.debug.timeline import Stop
from wiretape.errors import TapeUnwritable
from wiretape.model.run import Run
from wiretape.views.debug.reply import reply_view

CONDITIONS = (
    "agent=root*", "tool=look", "input>4000", "cached<0.5", "error", "finding", "finish=length and not first",
    "text~refund", "drift", "call=3 or turn=1", "result~look", "request.messages.length>0", "cache=broken",
)  # fmt: skip
ARGUMENTS = (
    "",
    "1",
    "2",
    "x3",
    "3.1",
    "turn 1",
    "start",
    "end",
    "full",
    "new",
    "-",
    "1-9",
    "'",
    "[",
    "$..role",
    "é",
    *CONDITIONS,
)


def made(run: Run) -> Debugger:
    known = Annotations(
        name="made",
        started=datetime(2026, 1, 1, tzinfo=UTC),
        cache=lambda: {1: CacheVerdict("first", "nothing was sent before")},
        findings=lambda: [CallFinding("lost", 2, "a result is lost"), CallFinding("odd", None, "the tape is odd")],
        drift=lambda: {3: ("the time",)},
    )
    return Debugger(run, known)


@given(runs(), st.lists(st.tuples(st.sampled_from(sorted(COMMANDS)), st.sampled_from(ARGUMENTS)), max_size=12))
def test_no_sequence_of_commands_crashes_it_and_every_reply_can_be_shown(
    run: Run, lines: list[tuple[str, str]]
) -> None:
    session = made(run)
    for name, argument in lines:
        reply = session.execute(f"{name} {argument}")
        text = shown(reply_view(reply), 60)
        assert "\x1b" not in text
        assert reply.error is None or text.strip()
        assert 0 <= session.at <= session.timeline.end
        assert session.frame == 0 or session.here.call is not None
        session.marks()


@given(runs(), st.sampled_from(CONDITIONS))
def test_continue_stops_at_exactly_the_places_of_a_breakpoint_in_both_directions(run: Run, condition: str) -> None:
    session = made(run)
    assert session.execute(f"break {condition}").error is None
    point = session.breakpoints.points[0]
    wanted = [session.timeline.place(stop) for stop in session.breakpoints.places(point, session.annotated)]
    seen = []
    while session.execute("continue") and session.here.phase != "end":
        seen.append(session.at)
    back = []
    while session.execute("reverse-continue") and session.here.phase != "start":
        back.append(session.at)
    assert seen == wanted
    assert back == wanted[::-1]


@given(runs(), st.sampled_from(["input", "model", "answer", "request.messages[0].text", "finish"]))
def test_a_watchpoint_stops_where_its_value_differs_from_the_agents_previous_call(run: Run, expression: str) -> None:
    session = made(run)
    session.execute(f"watch {expression}")
    seen = set()
    while session.execute("continue") and session.here.phase != "end":
        seen.add(session.here.call)
    plain = made(run)
    values = {}
    for number in plain.timeline.calls:
        plain.execute(f"goto {number}")
        reply = plain.execute(f"print {expression}")
        values[number] = getattr(reply.parts[0], "value", None) if reply.parts else None
    before = plain.timeline.call_before
    assert seen == {n for n in plain.timeline.calls if (b := before(n)) is not None and values[b] != values[n]}


@given(runs())
def test_the_outline_holds_every_call_and_every_tool_use_once(run: Run) -> None:
    session = made(run)
    found: list[Node] = []

    def walk(nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            found.append(node)
            walk(node.children)

    walk(session.outline())
    calls = sorted(node.stop.call or 0 for node in found if node.kind == "call")
    assert calls == list(session.timeline.calls)
    assert len([node for node in found if node.kind == "tool"]) == len(run.tool_uses)
    assert len({node.key for node in found}) == len(found)
    for node in found:
        session.visit(node.stop)
        assert session.here == node.stop


@given(runs(), st.text(max_size=20), st.integers(0, 30))
def test_completions_begin_as_the_line_does(run: Run, text: str, cursor: int) -> None:
    for line in (text, f"break {text}", f"goto {text}", f"print request.{text}", f"info {text}", f"help {text}"):
        found = made(run).complete(line, min(cursor, len(line)))
        typed = line[found.start : min(cursor, len(line))]
        assert all(candidate.startswith(typed) for candidate in found.candidates)


# -- by example --------------------------------------------------------------------------------------------------------


def test_an_empty_line_does_the_last_command_again() -> None:
    session = debugger()
    session.execute("")
    assert session.here.phase == "start"
    session.execute("stepi")
    session.execute("")
    assert session.here == Stop("answer", 1)


def test_a_command_may_be_abbreviated_if_it_is_unambiguous() -> None:
    session = debugger()
    assert session.execute("cont").command == "continue"
    assert session.execute("reverse-c").command == "reverse-continue"
    assert session.execute("BREAK 2").command == "break"
    error = session.execute("reverse").error
    assert error is not None
    assert "could be reverse-step, reverse-next" in error


def test_marks_show_the_current_stop_and_the_breakpoints() -> None:
    session = debugger(findings=[CallFinding("lost", 3, "a result is lost")])
    for line in ("break tool=create_calendar_event", "disable 1", "goto 4", "note here"):
        session.execute(line)
    marks = session.marks()
    assert marks[key_of(Stop("answer", 4))] == {"current", "note"}
    assert marks[key_of(Stop("tool", 2, 0))] == {"disabled"}
    assert marks[key_of(Stop("answer", 3))] == {"finding"}


def test_completion_knows_commands_names_values_members_and_numbers() -> None:
    session = debugger()
    assert session.complete("rev").candidates == (
        "reverse-continue", "reverse-finish", "reverse-next", "reverse-search", "reverse-step", "reverse-stepi",
    )  # fmt: skip
    assert session.complete("break ca").candidates == ("call", "cause", "cached", "cache", "cache_write")
    assert session.complete("break tool=s").candidates == ("schedule_event",)
    assert session.complete("break input>5 and agent=").candidates == ("root", "schedule_event")
    assert session.complete("print usage.ca").candidates == ("usage.cached", "usage.cache_write")
    assert session.complete("print request.mess").candidates == ("request.messages",)
    assert session.complete("goto ").candidates == ("start", "end", "turn 1", "1", "2", "3", "4")
    assert session.complete("info br").candidates == ("breakpoints",)
    assert session.complete("nothing ").candidates == ()


def test_a_note_that_cannot_be_saved_is_not_shown() -> None:
    session = debugger()

    def fail(notes: object) -> None:
        raise TapeUnwritable("the disk is full")

    session.save_notes = fail
    session.execute("goto 1")
    assert session.execute("note lost").error == "the disk is full"
    assert session.notes == []


def test_notes_are_passed_to_the_save_callback() -> None:
    session, kept = debugger(), list[list[Note]]()
    session.save_notes = lambda notes: kept.append(list(notes))
    session.execute("goto 2")
    session.execute("note one")
    session.execute("note two")
    session.execute("note delete 1")
    assert kept[-1] == [Note(Stop("answer", 2), "two")]


def test_a_growing_run_keeps_the_current_stop() -> None:
    session = debugger()
    whole = session.timeline.run
    part = Run(whole.steps[:2], (), whole.agents, whole.threads, whole.tool_uses[:2])
    grown = Debugger(part)
    grown.execute("goto 2")
    grown.execute("break call=4")
    grown.grow(whole)
    assert grown.here == Stop("answer", 2)
    grown.execute("continue")
    assert grown.here == Stop("request", 4)


def test_a_temporary_breakpoint_is_removed_when_hit() -> None:
    session = debugger()
    session.execute("tbreak agent=schedule_event")
    session.execute("continue")
    assert session.here == Stop("request", 2)
    assert session.breakpoints.points == []


def test_annotations_are_computed_once() -> None:
    asked = []
    run = debugger().timeline.run

    def findings() -> list[CallFinding]:
        asked.append(1)
        return []

    session = Debugger(run, Annotations(findings=findings))
    for line in ("step", "step", "info findings", "break finding", "list"):
        session.execute(line)
    assert asked == [1]


def test_control_sequences_of_a_model_never_reach_the_terminal() -> None:
    session = debugger()
    text = last(session, "note \x1b[2Jgone")
    assert "\x1b" not in text
