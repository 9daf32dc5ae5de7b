"""How a fault is spelled at a held call."""

from __future__ import annotations

import pytest

from wiretape.adapters.live.edit_operations import EditOperations
from wiretape.errors import UsageError
from wiretape.model.faults import Cut, ErrorStatus, Reset, Stall


def test_a_fault_is_typed_without_the_call_that_it_is_for() -> None:
    means = EditOperations()
    assert means.fault("529:after=2s") == ErrorStatus(529, after=2.0)
    assert means.fault("cut:event=5") == Cut(5)
    assert means.fault("stall") == Stall()


def test_only_what_a_proxy_can_do_is_injected() -> None:
    means = EditOperations(recording=True)
    assert means.fault("429") == ErrorStatus(429)
    assert means.fault("reset") == Reset()
    with pytest.raises(UsageError, match="only these faults: a status from 400 to 599, and reset"):
        means.fault("stall")
