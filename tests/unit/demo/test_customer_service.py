"""The customer-service agent's clock."""

from __future__ import annotations

from datetime import datetime

from wiretape.demo.customer_service import clock, spell


def test_a_moment_is_spelled_in_full() -> None:
    assert spell(datetime(2026, 2, 28, 15, 5, 30)) == "2026年02月28日 15时05分30秒 星期六"


def test_frozen_times_come_first_then_the_real_one() -> None:
    times = clock(["2026-02-28T15:05:30"])
    assert next(times) == datetime(2026, 2, 28, 15, 5, 30)
    assert abs((datetime.now() - next(times)).total_seconds()) < 60
