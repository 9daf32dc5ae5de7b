"""The screen: keys, clicks and typed lines become commands, and their replies are shown."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from rich.console import Group, RenderableType
from rich.text import Text
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.timer import Timer
from textual.widgets import Static, Tree

from wiretape.adapters.editor import in_editor
from wiretape.adapters.live.decision_queue import DecisionQueue
from wiretape.adapters.tui.command_line import CommandLine
from wiretape.adapters.tui.key_bindings import FOOTER, GROUPS, HELD_KEYS, help_page
from wiretape.adapters.tui.outline_tree import OutlineTree
from wiretape.debug.annotated_run import AnnotatedRun
from wiretape.debug.answer_stream import AnswerStream, answer_stream
from wiretape.debug.commands.registry import needs_terminal
from wiretape.debug.commands.topics import overview
from wiretape.debug.live.stepping import reply_after_wait
from wiretape.debug.outline import Node, key_of
from wiretape.debug.replies import Arrival, CommandReply, Edit, Sentence
from wiretape.debug.session import Debugger
from wiretape.errors import WiretapeError
from wiretape.model.wording import plural
from wiretape.views.debug.place import place_view, stream_view
from wiretape.views.debug.reply import reply_view
from wiretape.views.printable import one_line

_LOOK_S = 0.1  # seconds between two polls of a running program
NOT_STARTED = "The program is not running yet.\n\nSet breakpoints first, where its calls should be held."
BEGIN = Text("n or s goes to the first call, c to the first breakpoint, B sets one", style="dim")
_TICK_S = 0.05  # seconds between two frames of a played stream


def _bindings() -> list[BindingType]:
    keys = [key for _, group in GROUPS for key in group]
    made: list[BindingType] = []
    for key in keys:
        if key.command:
            made.append(Binding(key.keys, f"do({key.command!r})", key.help, show=False))
        elif key.action:
            # Keys that open the command line have priority, so that the next keys are typed into it.
            first = key.action.startswith("type(")
            made.append(Binding(key.keys, key.action, key.help, show=False, priority=first))
    return made


class DebugScreen(App[None]):
    """The screen of one debugger; `run()` returns when the user leaves."""

    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *_bindings(),
        Binding("pageup", "page(-1)", "scroll", show=False, priority=True),
        Binding("pagedown", "page(1)", "scroll", show=False, priority=True),
        Binding("less_than_sign", "widen(-1)", "narrower tree", show=False),
        Binding("greater_than_sign", "widen(1)", "wider tree", show=False),
    ]

    def __init__(self, debugger: Debugger, queue: DecisionQueue | None = None) -> None:
        super().__init__(ansi_color=True)
        self.debugger = debugger
        self.queue = queue
        self.guard: AbstractContextManager[Any] = queue.lock if queue is not None else nullcontext()
        self._drawn: AnnotatedRun | None = None  # the run that the tree shows
        self._news = False  # the program's calls have changed
        self._waiting = False  # for a held call or the end of the program
        self._asked = False  # the right side shows the output of a command, not the stop
        self._held = False  # the right side shows a held call
        self._played: tuple[AnswerStream, float] | None = None
        self._player: Timer | None = None

    # -- the content of the screen -----------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        with Horizontal(id="panes"):
            yield OutlineTree(self.debugger.outline())
            with VerticalScroll(id="side"):
                yield Static(id="shown")
        yield Static(id="said")
        yield CommandLine(self.debugger, self.guard)
        yield Static(FOOTER, id="keys")

    def on_mount(self) -> None:
        self.query_one(OutlineTree).focus()
        if self.queue is not None:
            self._watch(self.queue)
            return
        self.debugger.judged = False
        self._show_place(self._arrived())
        self._say(Text("? shows every key; : takes a command", style="dim"))
        self.run_worker(self._judge, thread=True)

    def _watch(self, queue: DecisionQueue) -> None:
        """Follow a program that runs, or that the user starts later."""

        def note() -> None:
            self._news = True

        queue.on_change = note
        with self.guard:
            self.refresh_marks()
        self._show(Text(NOT_STARTED))
        self._say(Text("c starts the program, s holds its first call, B sets a breakpoint; ? shows every key", "dim"))
        self.set_interval(_LOOK_S, self._look)

    def _look(self) -> None:
        """Show the changes of the program since the last poll."""
        queue = self.queue
        if queue is None:
            return
        with self.guard:
            for warning in queue.live.warnings():
                self._say(Text(one_line(warning), style="yellow"))
            if not self._news:
                return
            self._news = False
            queue.live.refresh()
            reply = reply_after_wait(self.debugger, queue.live) if self._waiting else None
            grown = self._drawn is not self.debugger.annotated
            if grown:
                self._drawn = self.debugger.annotated
                self.query_one(OutlineTree).fill(self.debugger.outline())
            settled = self._held and not queue.live.pending  # the held call was released
            if settled:
                self._held = self._asked = False
            if reply is not None:
                self._waiting = False
                self._answer("", reply, moved=True)
                self._say(self._what_can_be_done(queue))
                self._held = bool(queue.live.pending)
            elif (grown or settled) and not self._asked and self._player is None and self.debugger.timeline.calls:
                self._show(self._place(self._arrived()), home=False)
            self.refresh_marks()

    def _what_can_be_done(self, queue: DecisionQueue) -> Text:
        if queue.live.pending:
            return Text(HELD_KEYS, style="yellow")
        return Text(f"the program ended with exit code {queue.live.exit_code}", style="dim")

    def _judge(self) -> None:
        """Compute findings, verdicts and drift in a thread, while the user reads the first call."""
        self.debugger.judge()
        if self.is_running:  # the screen may be closed by now
            self.call_from_thread(self._judged)

    def _judged(self) -> None:
        self.debugger.judged = True
        if not self._asked:
            self._show(self._place(self._arrived()), home=False)
        self.refresh_marks()

    def _arrived(self) -> Arrival:
        stop = self.debugger.here
        return Arrival(self.debugger.detail() if stop.call is not None else None, place=stop.phase)

    def _place(self, arrived: Arrival) -> RenderableType:
        """The view of a stop; the start of a tape shows the overview."""
        if arrived.place != "start" or self.queue is not None:
            return place_view(arrived)
        return Group(
            place_view(arrived), Text(), reply_view(CommandReply(parts=overview(self.debugger))), Text(), BEGIN
        )

    def _show_place(self, arrived: Arrival, *above: RenderableType) -> None:
        """Show a stop, below other parts of the reply, such as the match of a search."""
        self._stop_playing()
        self._asked = bool(above)
        self._show(Group(*above, self._place(arrived)))
        self.refresh_marks()

    def _show(self, content: RenderableType, *, home: bool = True) -> None:
        self.query_one("#shown", Static).update(content)
        if home:
            self.query_one("#side", VerticalScroll).scroll_home(animate=False)

    def refresh_marks(self) -> None:
        """Update the title and the marks of the tree."""
        here = self.debugger.here
        key = key_of(here) if here.call is not None else None
        self.query_one(OutlineTree).show_marks(self.debugger.marks(), key)
        self.query_one("#title", Static).update(self._title())

    def _title(self) -> Text:
        debugger, stop = self.debugger, self.debugger.here
        title = Text(f" {one_line(debugger.annotated.annotations.name)}", no_wrap=True, overflow="ellipsis")
        calls = len(debugger.timeline.calls)
        if self.queue is not None:
            title.append(f" · {self._program(self.queue)}")
        if stop.call is None:
            return title.append(f" · at the {stop.phase} · {plural(calls, 'call')}")
        agent = one_line(debugger.annotated.agent(stop).name)
        frame = f" · frame {debugger.frame}" if debugger.frame else ""
        return title.append(f" · call {stop.call} of {calls}, {stop.phase} · {agent}{frame}")

    @staticmethod
    def _program(queue: DecisionQueue) -> str:
        live = queue.live
        if live.pending:
            return "held: " + " ".join(str(one.number) for one in live.pending)
        if live.exit_code is not None:
            return f"ended ({live.exit_code})"
        return "running" if live.running else "not started"

    def _say(self, content: RenderableType | str) -> None:
        self.query_one("#said", Static).update(content)

    # -- commands ----------------------------------------------------------------------------------------------------

    def action_do(self, command: str) -> None:
        self.do(command)

    def do(self, line: str) -> None:
        """Execute a command and show its reply."""
        if line.strip().split(" ")[0] in ("?", "help", "h") and len(line.split()) == 1:
            self.action_help()
            return
        at = self.debugger.at, self.debugger.frame
        reply = self._execute(line)
        if reply.quit:
            self.exit()
            return
        with self.guard:
            moved = at != (self.debugger.at, self.debugger.frame)
            self._answer(line, reply, moved)
        if reply.waits and reply.error is None:
            self._waiting = self._news = True
            self._say(Text("the program is running …", style="dim"))

    def _execute(self, line: str) -> CommandReply:
        """Execute a command. A command that prompts on the terminal suspends the screen."""
        if not needs_terminal(line):
            with self.guard:
                reply = self.debugger.execute(line)
            return self._edited(reply.edit) if reply.edit is not None else reply
        with self.suspend():
            reply = self.debugger.execute(line)
            print(f"\n{reply.error}" if reply.error is not None else "")
            input("Enter goes back to the screen ")
        return reply

    def _edited(self, edit: Edit) -> CommandReply:
        """Edit the text in $EDITOR, with the screen suspended."""
        assert self.queue is not None
        try:
            with self.suspend():
                text = in_editor(edit.text)
        except WiretapeError as error:
            return CommandReply(error=str(error))
        except SuspendNotSupported:
            return CommandReply(error="cannot open an editor here; give the JSON on the line: edit answer JSON")
        return self.queue.finish_edit(edit, text)

    def _answer(self, line: str, reply: CommandReply, moved: bool) -> None:
        if reply.error is not None:
            self._say(Text(one_line(reply.error), style="red"))
            return
        short = all(isinstance(part, Sentence) for part in reply.parts) and len(reply.parts) <= 2
        arrived = next((part for part in reply.parts if isinstance(part, Arrival)), None)
        if short:
            if moved:
                self._show_place(self._arrived())
            else:
                self.refresh_marks()
            self._say(reply_view(reply))
        elif arrived is not None and moved and not arrived.full:
            others = tuple(part for part in reply.parts if part is not arrived)
            self._show_place(arrived, *((reply_view(CommandReply(parts=others)), Text()) if others else ()))
            self._say(self._why_here(arrived))
        else:
            self.refresh_marks()
            self._show_output(line, reply_view(reply))

    def _why_here(self, arrived: Arrival) -> Text:
        if arrived.hits:
            return Text(f"stopped by {plural(len(arrived.hits), 'breakpoint')}", style="yellow")
        return Text(f"at the {arrived.place} of the tape" if arrived.detail is None else "", style="dim")

    def _show_output(self, line: str, content: RenderableType) -> None:
        self._stop_playing()
        self._asked = True
        self._show(content)
        self._say(Text.assemble((line.strip() or "again", "bold"), ("   Esc goes back to the current stop", "dim")))

    def on_command_line_entered(self, event: CommandLine.Entered) -> None:
        self.query_one(OutlineTree).focus()  # keys are commands again
        self.do(event.line)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys that open the command line are characters inside it."""
        return action != "type" or not self.query_one(CommandLine).has_focus

    def action_type(self, start: str) -> None:
        self.query_one(CommandLine).begin(start)

    def action_show_step(self) -> None:
        """Go back to the current stop and to the tree."""
        with self.guard:
            self._show_place(self._arrived())
        self._say("")
        self.query_one(OutlineTree).focus()

    def action_help(self) -> None:
        self._show_output("? keys and commands", help_page())

    def action_help_quit(self) -> None:
        """Ctrl-C does not leave: in a terminal it may be meant to copy."""
        self._say(Text("q leaves; ? shows every key", style="dim"))

    def action_leave(self) -> None:
        self.exit()

    def action_toggle_break(self) -> None:
        """Set a breakpoint at the current call, or delete it."""
        stop = self.debugger.here
        if stop.call is None:
            self._say(Text("no call is selected: B breaks on something else", style="red"))
            return
        text = f"call={stop.call}"
        known = next((point for point in self.debugger.breakpoints.points if point.text == text), None)
        self.do(f"delete {known.number}" if known is not None else f"break {text}")

    # -- the tree and the panes --------------------------------------------------------------------------------------

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        if event.node.data is None:
            return
        try:
            with self.guard:
                self._show_place(self.debugger.visit(event.node.data.stop))
        except WiretapeError as error:
            self._say(Text(one_line(str(error)), style="red"))

    def action_page(self, direction: int) -> None:
        side = self.query_one("#side", VerticalScroll)
        if direction > 0:
            side.scroll_page_down(animate=False)
        else:
            side.scroll_page_up(animate=False)

    def action_widen(self, direction: int) -> None:
        self.query_one(OutlineTree).widen(direction)

    # -- an answer as it streamed ------------------------------------------------------------------------------------

    def action_play(self) -> None:
        """Play the answer of this call at its recorded pace; again: stop."""
        if self._player is not None:
            self.action_show_step()
            return
        number = self.debugger.selected.call
        if number is None:
            self._say(Text("no call is selected", style="red"))
            return
        call = self.debugger.timeline.step(number).call
        stream = answer_stream(call, self.debugger.annotated.annotations.exchanges.get(call.exchange))
        if stream is None:
            self._say(Text(f"the answer to call {number} was not streamed", style="red"))
            return
        self._asked, self._played = True, (stream, time.monotonic())
        self._say(Text(f"playing the answer to call {number}; a or Esc stops it", style="dim"))
        self._player = self.set_interval(_TICK_S, self._play_on)

    def _play_on(self) -> None:
        if self._played is None:
            return
        stream, since = self._played
        ms = round((time.monotonic() - since) * 1000)
        events = stream.events_by(ms)
        self._show(Group(stream_view(stream, events, min(ms, stream.lasts_ms))), home=False)
        self.query_one("#side", VerticalScroll).scroll_end(animate=False)
        if events == len(stream):
            self._stop_playing()

    def _stop_playing(self) -> None:
        if self._player is not None:
            self._player.stop()
        self._player = self._played = None


def run_screen(debugger: Debugger, queue: DecisionQueue | None = None) -> None:
    """Show a debugger on the terminal until the user leaves. `queue`: the decisions for a running program."""
    DebugScreen(debugger, queue).run()
