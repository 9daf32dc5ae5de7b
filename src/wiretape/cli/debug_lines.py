"""The debugger without a screen: a prompt at a terminal, and scripts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from wiretape.debug.script import split
from wiretape.errors import UsageError
from wiretape.views.debug_reply import reply_view
from wiretape.views.figures import count
from wiretape.views.printable import one_line
from wiretape.views.terminal import make_console

if TYPE_CHECKING:
    from wiretape.debug.session import Debugger

PROMPT = "(wiretape) "


def run_script(debugger: Debugger, script: str) -> None:
    """Do every command, a blank line between the replies. Raises UsageError at the first that cannot be done."""
    console = make_console()
    printed = False
    for number, line in enumerate(split(script), 1):
        reply = debugger.execute(line)
        if reply.error is not None:
            raise UsageError(f"command {number} ({one_line(line)}): {reply.error}")
        if reply.quit:
            return
        if reply.parts:
            if printed:
                console.print()
            console.print(reply_view(reply))
            printed = True


def converse(debugger: Debugger) -> None:
    """Ask for a line, do it, show the reply, until the person leaves."""
    console = make_console()
    console.print(reply_view(debugger.execute("info tape")))
    console.print("help or ? lists the commands; step goes on to the first call", style="dim")
    debugger.history.clear()
    debugger.judge()  # so that no step has to wait for it
    found = len(debugger.world.all_remarks())
    if found:
        console.print(f"{count(found, 'finding')} about this run: info findings lists them", style="yellow")
    _prepare_completion(debugger)
    while True:
        try:
            line = _ask()
        except EOFError:
            console.print()
            return
        except KeyboardInterrupt:
            console.print()
            continue
        try:
            reply = debugger.execute(line)
            console.print(reply_view(reply)) if reply.parts or reply.error is not None else None
        except KeyboardInterrupt:
            console.print("(interrupted)", style="dim")
            continue
        if reply.quit:
            return


def _ask() -> str:
    """One line. The prompt is no result: where those go into a file, it goes to stderr."""
    if sys.stdout.isatty():
        return input(PROMPT)
    print(PROMPT, end="", file=sys.stderr, flush=True)
    return input()


def _prepare_completion(debugger: Debugger) -> None:
    """The tabulator completes, where Python has readline."""
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
    """What may stand for the word from `begin` to `end`, which is readline's idea of a word: up to the last blank."""
    found = debugger.complete(line, end)
    before, over = line[begin : found.start], line[found.start : begin]
    words = [before + word[len(over) :] for word in found.candidates if word.startswith(over)]
    whole = len(words) == 1 and not line[:begin].strip()  # a command: its argument can follow at once
    return [f"{words[0]} "] if whole else words
