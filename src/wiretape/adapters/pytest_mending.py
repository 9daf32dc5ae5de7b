"""What a test's failure says to do about it: the command that records its tape anew, the host to let through."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass

from wiretape.adapters.pytest_options import Mode
from wiretape.adapters.pytest_users import Users
from wiretape.replay.values import MissReason


@dataclass(frozen=True, slots=True)
class Mending:
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

    def mend(self, reason: MissReason, waiting: Collection[int]) -> str:
        """`waiting`: the recorded exchanges that the test has not asked for. What is recorded beside them may well be
        one of them with a changed prompt, and mode `new` would leave the old one on the tape for ever."""
        if not self.has_tape:
            return f"  to record it: {self.command('once')}"
        if self.other_worker:
            return (
                "  this tape was recorded a moment ago by another worker of xdist, with the calls of other tests\n"
                f"  give such tests one worker: --dist loadfile; or record it now: {self.command(Mode.NEW)}"
            )
        if reason == "already played":
            return f"  to give recorded answers again: @pytest.mark.wiretape(repeat=True)\n{self._again()}"
        if reason not in ("diverged", "never recorded"):
            return f"  to record it: {self.command(Mode.NEW)}"
        if self.users is not None:
            return self._mend_shared(self.users, waiting)
        if reason == "diverged" or waiting:
            return f"  if the change is intended: {self.rewriting()}"
        return f"  to record it: {self.command(Mode.NEW)}"

    def _again(self) -> str:
        if self.users is not None and self.users.partial:
            return f"  to record it once more: {self.command(Mode.NEW)}"
        return f"  to record anew: {self.rewriting()}"

    def _mend_shared(self, users: Users, waiting: Collection[int]) -> str:
        """A call that this test has changed, or one that a new test makes? Only a recorded call that none of the others
        asks for can be the old form of it."""
        new = f"  to record it: {self.command(Mode.NEW)}"
        if not set(waiting) - set(users.played()):
            return new
        if users.partial:
            return f"{new}\n  not with mode rewrite: {users.partial}, and others may use this tape"
        if users.are_done():
            return f"  if the change is intended: {self.rewriting()}"
        return f"{new}\n  if it is a recorded call that has changed: {self.rewriting()}"

    def refusal(self, asked: str) -> str:
        host = asked.rpartition(":")[0] or asked
        return (
            f"{asked} is outside the tape: {self.test} runs from a tape, and the network is refused to it\n"
            f'  to let it through: @pytest.mark.wiretape(allow_hosts=["{host}"]), or wiretape_allow_hosts in the\n'
            "  configuration of pytest; a child process that calls models gets wiretape.environ() as its environment"
        )


def _command(arguments: Collection[str], mode: str) -> str:
    return f"pytest {shlex.join(arguments)} --wiretape-mode={mode}"
