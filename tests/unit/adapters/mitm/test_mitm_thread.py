"""The proxy in a thread: what it says when it fails."""

from __future__ import annotations

import logging
import warnings

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what mitmproxy imports
    from wiretape.adapters.mitm.mitm_thread import _Faults


@pytest.mark.parametrize(
    ("logged", "told"), [("it broke\nhere", ["mitmproxy reports: it broke"]), ("", []), (" \n", [])]
)
def test_an_error_is_reported_by_its_first_line_and_an_empty_one_is_not(logged: str, told: list[str]) -> None:
    heard: list[str] = []
    _Faults(heard.append).emit(logging.LogRecord("mitmproxy", logging.ERROR, "here", 1, logged, (), None))
    assert heard == told
