"""What a test's failure says to do about it: the command that records its tape anew, the host to let through."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from wiretape.adapters.pytest_options import Mode
from wiretape.replay.values import MissReason


@dataclass(frozen=True, slots=True)
class Mending:
    """`test` is the test's id, as pytest takes it. `shared`: its marker names the tape, so that others may use it."""

    test: str
    has_tape: bool
    shared: bool = False

    def command(self, mode: str) -> str:
        return f"pytest {shlex.quote(self.test)} --wiretape-mode={mode}"

    def rewriting(self) -> str:
        """The command that makes a tape of what the test asks now, and of nothing else."""
        command = self.command(Mode.REWRITE)
        if not self.shared:
            return command
        return f"{command}\n  together with every other test that uses this tape: what none of them asks is dropped"

    def mend(self, reason: MissReason, waiting: bool) -> str:
        """`waiting`: the tape has calls that were not asked for. What is recorded beside them may well be one of them
        with a changed prompt, and mode `new` would leave the old one on the tape for ever."""
        if not self.has_tape:
            return f"  to record it: {self.command('once')}"
        if reason == "already played":
            again = "  to give recorded answers again: @pytest.mark.wiretape(repeat=True)"
            return f"{again}\n  to record anew: {self.rewriting()}"
        if reason == "diverged" or (reason == "never recorded" and waiting):
            return f"  if the change is intended: {self.rewriting()}"
        return f"  to record it: {self.command(Mode.NEW)}"

    def refusal(self, asked: str) -> str:
        host = asked.rpartition(":")[0] or asked
        return (
            f"{asked} is outside the tape: {self.test} runs from a tape, and the network is refused to it\n"
            f'  to let it through: @pytest.mark.wiretape(allow_hosts=["{host}"]), or wiretape_allow_hosts in the\n'
            "  configuration of pytest; a child process that calls models gets wiretape.environ() as its environment"
        )
