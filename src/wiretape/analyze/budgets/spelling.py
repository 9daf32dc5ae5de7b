"""Reads amounts as people write them: 50k, 1.5M, 60%."""

from __future__ import annotations

import re

from wiretape.errors import UsageError

_COUNT = re.compile(r"(\d+(?:[_,]\d{3})*(?:\.\d+)?)\s*([kKmM]?)")
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


def count(value: int | str, name: str) -> int:
    """A number of tokens: 50000, 50k, 1.5M."""
    match = _COUNT.fullmatch(str(value).strip())
    number = float(re.sub("[_,]", "", match[1])) * _TIMES[match[2].lower()] if match else -1.0
    if number < 0 or number != int(number):
        raise UsageError(f"{name} is a whole number, such as 50000 or 50k; not {value!r}")
    return int(number)


def share(value: float | str, name: str) -> float:
    """A share: 0.6 or 60%."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise UsageError(f"{name} is a share between 0 and 1, such as 0.6 or 60%; not {value!r}")
    return number
