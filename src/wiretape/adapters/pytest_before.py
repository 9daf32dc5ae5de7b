"""A test's setup before its tape is open: what fixtures of a wider scope ask models then would be on no tape.

Loaded with the first test that has a tape.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from wiretape.adapters.network_guard import NetworkGuard


class BeforeTape:
    """Refuses model providers to a test that runs from its tape, until that is open. Other hosts are let through."""

    def __init__(self, test: str, allow_hosts: Sequence[str]) -> None:
        self._test = test
        self._guard = NetworkGuard(allow_hosts, self._refusal, providers_only=True)
        self._guard.__enter__()

    def end(self) -> None:
        self._guard.__exit__(None, None, None)

    def judge(self, error: BaseException | None = None) -> None:
        """Fails a setup that asked a model, also one that hides it, as SDKs do behind "Connection error."."""
        if self._guard.refused:
            failure = pytest.fail.Exception("\n".join(map(self._refusal, self._guard.refused)), pytrace=False)
            raise failure.with_traceback(error.__traceback__ if error is not None else None) from None

    def _refusal(self, asked: str) -> str:
        return (
            f"{asked} was asked before the tape of {self._test} was open, by a fixture of a wider scope\n"
            "  what such a fixture asks is on no test's tape: give it the scope of the test, or a tape of its own,\n"
            '  with wiretape.replay("captures/fixture.tape"); to let it through: allow_hosts'
        )
