"""A test's setup before its tape is open: what fixtures of a wider scope ask models then would be on no tape.

Loaded with the first test that has a tape.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pytest

from wiretape.adapters.inprocess.network_guard import NetworkGuard

_NAMES_A_KEY: Final = re.compile(r"api_?key|credentials|auth_?token", re.IGNORECASE)  # as SDKs do that lack one


class SetupGuard:
    """Refuses model providers to a test that runs from its tape, until that is open. Other hosts are let through."""

    def __init__(self, test: str, allow_hosts: Sequence[str]) -> None:
        self._test = test
        self._guard = NetworkGuard(allow_hosts, self._refusal, providers_only=True)
        self._guard.__enter__()
        self._is_over = False

    def end(self) -> None:
        self._is_over = True
        self._guard.__exit__(None, None, None)

    def judge(self, error: BaseException | None = None) -> None:
        """Fails a setup that asked a model, also one that hides it, as SDKs do behind "Connection error.".

        A client that is made there has no dummy key yet: it is said what to do about that.
        """
        if self._guard.refused:
            failure = pytest.fail.Exception("\n".join(map(self._refusal, self._guard.refused)), pytrace=False)
            raise failure.with_traceback(error.__traceback__ if error is not None else None) from None
        if error is not None and not self._is_over and _NAMES_A_KEY.search(str(error)):
            error.add_note(
                f"this was before the tape of {self._test} was open, in a fixture of a wider scope\n"
                "  no dummy key is there yet: give that fixture the scope of the test, or the environment a dummy\n"
                "  of your own, such as OPENAI_API_KEY=none"
            )

    def _refusal(self, asked: str) -> str:
        return (
            f"{asked} was asked before the tape of {self._test} was open, by a fixture of a wider scope\n"
            "  what such a fixture asks is on no test's tape: give it the scope of the test, or a tape of its own,\n"
            '  with wiretape.replay("captures/fixture.tape"); to let it through: allow_hosts'
        )
