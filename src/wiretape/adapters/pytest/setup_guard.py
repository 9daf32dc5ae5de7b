"""Blocks model providers during the setup of a test, until its tape is open.

Calls of fixtures with a wider scope would otherwise reach real models. Loaded with the first test that has a tape.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pytest

from wiretape.adapters.inprocess.network_guard import NetworkGuard

_NAMES_A_KEY: Final = re.compile(r"api_?key|credentials|auth_?token", re.IGNORECASE)  # in errors of SDKs


class SetupGuard:
    """Blocks model providers for a test that runs from its tape. Other hosts are allowed."""

    def __init__(self, test: str, allow_hosts: Sequence[str]) -> None:
        self._test = test
        self._guard = NetworkGuard(allow_hosts, self._refusal, providers_only=True)
        self._guard.__enter__()
        self._is_over = False

    def end(self) -> None:
        self._is_over = True
        self._guard.__exit__(None, None, None)

    def judge(self, error: BaseException | None = None) -> None:
        """Fail a setup that called a model, even if an SDK hid the error behind "Connection error.".

        An error about a missing API key gets a note: the dummy keys are set when the tape opens.
        """
        if self._guard.refused:
            failure = pytest.fail.Exception("\n".join(map(self._refusal, self._guard.refused)), pytrace=False)
            raise failure.with_traceback(error.__traceback__ if error is not None else None) from None
        if error is not None and not self._is_over and _NAMES_A_KEY.search(str(error)):
            error.add_note(
                f"this happened before the tape of {self._test} was open, in a fixture of a wider scope\n"
                "  dummy keys are not set yet: give that fixture the scope of the test, or set a dummy key yourself,\n"
                "  such as OPENAI_API_KEY=none"
            )

    def _refusal(self, host: str) -> str:
        return (
            f"{host} was called before the tape of {self._test} was open, by a fixture of a wider scope\n"
            "  give that fixture the scope of the test, or its own tape:\n"
            '  wiretape.replay("captures/fixture.tape"); or allow the host with allow_hosts'
        )
