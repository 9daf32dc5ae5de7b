from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from wiretape.errors import TapeTooOld, UsageError
from wiretape.matching.tape_age import age_limit, parse_max_age, spell
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

STARTED = datetime(2026, 3, 1, 12, tzinfo=UTC)
TAPE = Tape(Path("a.tape"), Header(started=STARTED, recorder="w"), ())


@pytest.mark.parametrize(
    ("given", "days"),
    [(30, 30), ("30", 30), ("30d", 30), (" 30 D ", 30), (1.5, 1.5), ("12h", 0.5), ("2w", 14), (10**300, 999_999_999)],
)
def test_ages_in_days_hours_and_weeks(given: object, days: float) -> None:
    assert parse_max_age(given).days == int(days)
    assert parse_max_age(given) >= timedelta(days=days)


@pytest.mark.parametrize("given", ["", "soon", "30m", "-3", "d", 0, "0d", True, None, [30]])
def test_a_wrong_age_is_an_error_with_the_allowed_forms(given: object) -> None:
    with pytest.raises(ValueError, match=r'is not an age: give days \(30\), or "30d", "12h", "2w"'):
        parse_max_age(given)


def test_a_tape_is_too_old_after_its_day() -> None:
    limit = age_limit("30d", "warn")
    assert limit.check([TAPE], STARTED + timedelta(days=30)) == []
    assert limit.check([TAPE], STARTED + timedelta(days=30, seconds=1), "  to mend it: …") == [
        "a.tape was recorded 30 days ago (2026-03-01): max_age is 30 days\n  to mend it: …"
    ]
    assert age_limit(None, "fail").check([TAPE], STARTED + timedelta(days=9999)) == []


def test_with_the_action_fail_it_is_an_error() -> None:
    with pytest.raises(TapeTooOld, match=r"a\.tape was recorded 45 days ago \(2026-03-01\): max_age is 12 hours"):
        age_limit("12h", "fail").check([TAPE], STARTED + timedelta(days=45))


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(UsageError, match="max_age: 'soon' is not an age"):
        age_limit("soon", None)
    with pytest.raises(UsageError, match="max_age_action is 'shout'"):
        age_limit(30, "shout")


def test_a_tape_from_the_future_is_not_old() -> None:
    assert age_limit("1h", "fail").check([TAPE], STARTED - timedelta(days=1)) == []


def test_ages_are_spelled_as_people_do() -> None:
    ages = [timedelta(hours=1), timedelta(hours=36), timedelta(days=1), timedelta(days=2.9)]
    assert [spell(age) for age in ages] == ["1 hour", "36 hours", "1 day", "2 days"]
