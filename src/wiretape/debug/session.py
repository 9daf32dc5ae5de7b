"""The debugger: a run that is walked by commands.

    debugger = Debugger(run, Annotations(...), notes, save_notes)
    reply = debugger.execute("break tool=schedule_event")   # raises no WiretapeError: see reply.error
    debugger.here, debugger.detail(), debugger.outline(), debugger.marks(), debugger.complete("bre", 3)

The screen, line mode and scripts share it. Its state changes by commands, by `visit` (a click on the outline) and by
`grow` (a live run has more calls).
"""

from __future__ import annotations

from dataclasses import replace

from wiretape.debug.commands.completion import Completion, complete
from wiretape.debug.commands.registry import find
from wiretape.debug.replies import CommandReply
from wiretape.debug.state import DebuggerState
from wiretape.errors import WiretapeError

LONGEST_HISTORY = 1000


class Debugger(DebuggerState):
    """Executes command lines. Not thread-safe: one front end at a time."""

    def execute(self, line: str) -> CommandReply:
        """Execute one command. An empty line repeats the last one."""
        words = line.strip()
        if not words:
            if not self.history:
                return CommandReply()
            words = self.history[-1]
        else:
            self.history.append(words)
            del self.history[:-LONGEST_HISTORY]
        try:
            if self.live is not None:
                self.live.refresh()
            command, rest = find(words)
            reply = command.run(self, rest)
            return replace(reply, command=command.name)
        except WiretapeError as error:
            return CommandReply(error=str(error))

    def complete(self, line: str, cursor: int | None = None) -> Completion:
        """Complete the word at the cursor."""
        return complete(self, line, len(line) if cursor is None else cursor)
