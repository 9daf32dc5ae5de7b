"""The debugger without a screen: a prompt on the terminal, and scripts of commands."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from wiretape.debug.commands.topics import overview
from wiretape.debug.replies import CommandReply, Edit, sentence
from wiretape.errors import UsageError
from wiretape.views.debug.reply import reply_view
from wiretape.views.printable import one_line, visible
from wiretape.views.terminal import make_console

if TYPE_CHECKING:
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.debug.session import Debugger


PROMPT = "(wiretape) "


class LineConsole:
    """A console for a debugger. `queue`: the decisions for a running program, if there is one."""

    def __init__(self, debugger: Debugger, queue: DecisionQueue | None = None) -> None:
        self.debugger = debugger
        self._queue = queue
        self._console = make_console()

    def do(self, line: str) -> CommandReply:
        """Execute one command, its editor and its wait included."""
        if self._queue is None:
            return self.debugger.execute(line)
        reply = self._queue.execute(line)
        if reply.edit is not None:
            reply = self._edited(self._queue, reply.edit)
        if reply.waits:
            later = self._waited(self._queue)
            reply = replace(reply, parts=(*reply.parts, *later.parts), error=later.error)
        self.show_output()
        return reply

    def show(self, reply: CommandReply) -> None:
        if reply.parts or reply.error is not None:
            self._console.print(reply_view(reply))

    def blank(self) -> None:
        self._console.print()

    def say(self, text: str, style: str) -> None:
        self._console.print(text, style=style)

    def show_output(self) -> None:
        """Print the program's new output, each line with the last call that was answered before it."""
        for line in self._queue.new_output() if self._queue is not None else ():
            mark = "-" if line.call is None else line.call
            with suppress(OSError):  # standard output was closed
                print(
                    f"[{mark}] {visible(line.text)}",
                    file=sys.stdout if line.stream == "out" else sys.stderr,
                    flush=True,
                )

    @staticmethod
    def _edited(queue: DecisionQueue, edit: Edit) -> CommandReply:
        from wiretape.adapters.editor import in_editor

        try:
            return queue.finish_edit(edit, in_editor(edit.text))
        except UsageError as error:
            return CommandReply(error=str(error))

    def _waited(self, queue: DecisionQueue) -> CommandReply:
        try:
            return queue.wait(self.show_output)
        except KeyboardInterrupt:
            queue.interrupt()
            return sentence("the program is running; its next call will be held (continue waits for it)", "dim")


def run_script(debugger: Debugger, script: str, queue: DecisionQueue | None = None) -> bool:
    """Execute a script; returns whether it ended with quit. Raises UsageError at the first command that fails."""
    console = LineConsole(debugger, queue)
    printed = False
    for number, line in enumerate(split(script), 1):
        reply = console.do(line)
        if reply.error is not None:
            raise UsageError(f"command {number} ({one_line(line)}): {reply.error}")
        if reply.quit:
            return True
        if reply.parts:
            if printed:
                console.blank()
            console.show(reply)
            printed = True
    return False


def converse(debugger: Debugger, queue: DecisionQueue | None = None) -> None:
    """Read and execute command lines until the user quits."""
    console = LineConsole(debugger, queue)
    _greet(console, debugger, queue)
    _prepare_completion(debugger)
    while True:
        try:
            line = _ask()
        except EOFError:
            console.blank()
            return
        except KeyboardInterrupt:
            console.blank()
            continue
        try:
            reply = console.do(line)
            console.show(reply)
        except KeyboardInterrupt:
            console.say("(interrupted)", "dim")
            continue
        if reply.quit:
            return


def _greet(console: LineConsole, debugger: Debugger, queue: DecisionQueue | None) -> None:
    if queue is not None:
        console.say("the program is not running yet: set breakpoints with break, start it with continue", "dim")
        console.say("step starts it and holds its first call; help or ? lists the commands", "dim")
        return
    debugger.judge()  # now, so that no step is slow
    console.show(CommandReply(parts=overview(debugger)))
    console.say("step or next goes to the first call, continue to the first breakpoint; help or ? lists all", "dim")


def _ask() -> str:
    """Read one line. If standard output is not a terminal, the prompt goes to stderr."""
    if sys.stdout.isatty():
        return input(PROMPT)
    print(PROMPT, end="", file=sys.stderr, flush=True)
    return input()


def _prepare_completion(debugger: Debugger) -> None:
    """Complete with Tab, if Python has readline."""
    try:
        import readline
    except ImportError:  # Windows
        return

    def complete(text: str, state: int) -> str | None:
        found = fitting(debugger, readline.get_line_buffer(), readline.get_begidx(), readline.get_endidx())
        return found[state] if state < len(found) else None

    readline.set_completer_delims(" \t\n")
    readline.set_completer(complete)
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")


def fitting(debugger: Debugger, line: str, begin: int, end: int) -> list[str]:
    """The completions of readline's word from `begin` to `end`. Its words are separated by blanks."""
    found = debugger.complete(line, end)
    before, over = line[begin : found.start], line[found.start : begin]
    words = [before + word[len(over) :] for word in found.candidates if word.startswith(over)]
    whole = len(words) == 1 and not line[:begin].strip()  # a command: add a blank for its argument
    return [f"{words[0]} "] if whole else words


# A quote inside a word (don't) does not open a string.
_PIECE = re.compile(
    r"""(?<!\w)"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*'|(?<=[\s~])/(?:\\.|[^/\\\n])+/|(?P<end>[;\n])"""
)


def split(text: str) -> list[str]:
    """Split a script at `;` and line ends outside quotes and regular expressions; leave out blanks and # comments."""
    found, start = [], 0
    for match in _PIECE.finditer(text):
        if match["end"] and not _in_comment(text, start, match):
            found.append(text[start : match.start()])
            start = match.end()
    found.append(text[start:])
    return [command for part in found if (command := part.strip()) and not command.startswith("#")]


def _in_comment(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether the match is a `;` inside a comment, which ends at the end of its line."""
    return match["end"] == ";" and text[start : match.start()].lstrip().startswith("#")
