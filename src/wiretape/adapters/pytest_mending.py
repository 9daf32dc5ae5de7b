"""What a test's failure says to do about it: the command that records its tape anew, the host to let through."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from wiretape.replay.values import MissReason


@dataclass(frozen=True, slots=True)
class Mending:
    """`test` is the test's id, as pytest takes it."""

    test: str
    has_tape: bool

    def command(self, mode: str) -> str:
        return f"pytest {shlex.quote(self.test)} --wiretape-mode={mode}"

    def mend(self, reason: MissReason) -> str:
        if not self.has_tape:
            return f"  to record it: {self.command('once')}"
        if reason == "already played":
            again = "  to give recorded answers again: @pytest.mark.wiretape(repeat=True)"
            return f"{again}\n  to record anew: {self.command('rewrite')}"
        if reason == "diverged":
            return f"  if the change is intended: {self.command('rewrite')}"
        return f"  to record it: {self.command('new')}"

    def refusal(self, asked: str) -> str:
        host = asked.rpartition(":")[0] or asked
        return (
            f"{asked} is outside the tape: {self.test} runs from a tape, and the network is refused to it\n"
            f'  to let it through: @pytest.mark.wiretape(allow_hosts=["{host}"]), or wiretape_allow_hosts in the\n'
            "  configuration of pytest; a child process that calls models gets wiretape.environ() as its environment"
        )
