"""What a test's failure says to do about it: the command that records its tape anew, the host to let through."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass

from wiretape.adapters.pytest.options import Mode
from wiretape.adapters.pytest.tape_users import Users
from wiretape.matching.values import MissReason


@dataclass(frozen=True, slots=True)
class Fixes:
    """`test` is the test as one types it. `users`: of a tape that other tests use, or may use; None: it has it alone.

    `other_worker`: another worker of xdist has recorded the tape in this run.
    """

    test: str
    has_tape: bool
    users: Users | None = None
    other_worker: bool = False

    def command(self, mode: str) -> str:
        return _command([self.test], mode)

    def rewriting(self) -> str:
        """The command that makes a tape of what its tests ask now, and of nothing else."""
        if self.users is None:
            return self.command(Mode.REWRITE)
        command = _command(self.users.arguments, Mode.REWRITE)
        if not self.users.partial:
            return command
        return (
            f"{command}\n  together with every other test that uses this tape ({self.users.partial}):\n"
            "  what none of them asks is dropped"
        )

    def updating(self) -> str:
        """The command that asks live what the tape does not answer, and drops what no test asks for any more.

        All that use the tape are named: nothing is asked twice, and what one of them does not ask for another may.
        """
        if self.users is None or self.users.partial:
            return self.command(Mode.UPDATE)
        return _command(self.users.arguments, Mode.UPDATE)

    def mend(self, reason: MissReason, waiting: bool) -> str:
        """`waiting`: there are recorded calls that the test has not asked for: this may be one of them, changed."""
        if not self.has_tape:
            return f"  to record it: {self.command(Mode.ONCE)}"
        if self.other_worker:
            return (
                "  this tape was recorded a moment ago by another worker of xdist, with the calls of other tests\n"
                f"  give such tests one worker: --dist loadfile; or record it now: {self.command(Mode.NEW)}"
            )
        if reason == "already played":
            return (
                "  to give recorded answers again: @pytest.mark.wiretape(repeat=True)\n"
                f"  to record it once more: {self.updating()}"
            )
        changed = reason == "diverged" or (reason == "never recorded" and waiting)
        return f"  {'if the change is intended' if changed else 'to record it'}: {self.updating()}"

    def refusal(self, asked: str) -> str:
        host = asked.rpartition(":")[0] or asked
        return (
            f"{asked} is outside the tape: {self.test} runs from a tape, and the network is refused to it\n"
            f'  to let it through: @pytest.mark.wiretape(allow_hosts=["{host}"]), or wiretape_allow_hosts in the\n'
            "  configuration of pytest; a child process that calls models gets wiretape.environ() as its environment"
        )


def _command(arguments: Collection[str], mode: str) -> str:
    return f"pytest {shlex.join(arguments)} --wiretape-mode={mode}"
