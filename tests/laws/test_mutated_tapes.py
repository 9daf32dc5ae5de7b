"""A short run of the campaign `mutations`: the same tapes, mutators and commands, a few of each."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.torture import mutations


@pytest.fixture(scope="module", autouse=True)
def seeds() -> Iterator[None]:
    before = signal.getsignal(signal.SIGVTALRM)
    mutations._prepare(mutations.seeds(1))
    yield
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("first", range(0, 420, 42))
def test_mutated_tapes_give_no_internal_error(first: int) -> None:
    outcome = mutations.run_batch((1, first, first + 42))
    assert outcome.failures == []
    assert outcome.tried["mutated tapes"] == 42


def test_every_mutator_changes_a_tape() -> None:
    import random

    seed = mutations.seeds(1)[0]
    for mutator in mutations.MUTATORS:
        made = [mutations.mutated(seed, mutator, random.Random(number))[0] for number in range(5)]
        assert any(text != seed.text for text in made), mutator
