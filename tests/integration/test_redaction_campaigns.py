"""The short form of two campaigns: canaries in every promised place, and harmless strings that stay."""

from __future__ import annotations

import pytest
from tests.torture import canaries, false_positives


@pytest.mark.parametrize("seed", [1, 2])
def test_no_canary_is_kept(seed: int) -> None:
    assert canaries.main(["--seed", str(seed), "--count", "60"]) == 0


def test_no_canary_is_kept_by_the_command_when_it_is_killed() -> None:
    assert canaries.main(["--seed", "3", "--count", "100"]) == 0


def test_harmless_strings_stay() -> None:
    assert false_positives.main(["--seed", "1", "--count", "60"]) == 0
