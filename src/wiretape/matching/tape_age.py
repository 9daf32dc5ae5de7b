"""The age limit of tapes: providers change their models, and a tape keeps the old answers.

A tape's age counts from `started` in its header. The clock is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from wiretape.errors import TapeTooOld, UsageError
from wiretape.model.wording import plural

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape

AgeAction: TypeAlias = Literal["warn", "fail"]
MaxAge: TypeAlias = str | int | float

_DAYS: Final = {"h": 1 / 24, "d": 1, "w": 7}
_SPELLED: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([hdw]?)")


def parse_max_age(given: object) -> timedelta:
    """Parse `30`, `"30d"`, `"12h"` or `"2w"`. Raises ValueError with the allowed forms."""
    spelled = _SPELLED.fullmatch(str(given).strip().lower())
    if isinstance(given, bool) or spelled is None or not float(spelled[1]):
        raise ValueError(f'{given!r} is not an age: give days (30), or "30d", "12h", "2w"')
    try:
        return timedelta(days=float(spelled[1]) * _DAYS[spelled[2] or "d"])
    except OverflowError:
        return timedelta.max


@dataclass(frozen=True, slots=True)
class AgeLimit:
    """The maximum age of a tape (None: no limit), and whether an older tape is an error."""

    limit: timedelta | None = None
    fails: bool = False

    def check(self, tapes: Iterable[Tape], now: datetime, fix: str = "") -> list[str]:
        """A warning for each tape that is too old. Raises TapeTooOld for the first one if `fails`."""
        warnings = []
        for tape in tapes:
            age = now - tape.header.started
            if self.limit is None or age <= self.limit:
                continue
            day = tape.header.started.date().isoformat()
            text = f"{tape.path or 'the tape'} was recorded {spell(age)} ago ({day}): max_age is {spell(self.limit)}"
            warnings.append(f"{text}\n{fix}" if fix else text)
            if self.fails:
                raise TapeTooOld(warnings[0])
        return warnings


def age_limit(max_age: MaxAge | None, action: str | None) -> AgeLimit:
    """The limit of these settings. Raises UsageError."""
    if action not in (None, "warn", "fail"):
        raise UsageError(f'max_age_action is {action!r}: use "warn" or "fail"')
    try:
        return AgeLimit(parse_max_age(max_age) if max_age is not None else None, action == "fail")
    except ValueError as error:
        raise UsageError(f"max_age: {error}") from None


def spell(age: timedelta) -> str:
    """`45 days`, `12 hours`."""
    if age >= timedelta(days=2) or age == timedelta(days=1):
        return plural(age.days, "day")
    hours = round(age / timedelta(hours=1), 1)
    return f"{hours:g} hour{'' if hours == 1 else 's'}"
