"""Excerpts of two values around their first difference."""

from __future__ import annotations

import re

from wiretape.compare.difference import Absent, Difference
from wiretape.model.common_prefix import common_prefix
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import text_of
from wiretape.model.wording import window
from wiretape.tape.redaction import PLACEHOLDER

RECORDED = "recorded  "  # labels of the two values in messages
LIVE = "live      "
_AROUND = 6  # characters around a placeholder that locate it in the live text
_NEAR = 3  # characters before it that are enough, if more differ
_VALUE = rf"""{PLACEHOLDER.pattern}|[^\s"'<>,;)\]}}]{{7,}}[^\s"'<>,;)\]}}.:!?]"""
_SHORTEST = 8  # characters of a secret that is replaced everywhere


def excerpts(difference: Difference, width: int = 100) -> tuple[str, str]:
    """One line for each value, around their first difference. Secrets are redacted in both."""
    recorded = spelled(difference.recorded)
    live = covered(recorded, spelled(difference.live))
    if max(len(recorded), len(live)) <= width:
        return recorded, live
    common = common_prefix(recorded, live)
    start = max(0, common - width // 3)
    return window(recorded, start, width), window(live, start, width)


def covered(recorded: str, live: str) -> str:
    """The live text with the recorded placeholders in the place of the secrets that they replaced."""
    at = 0
    for found in PLACEHOLDER.finditer(recorded):
        secret = _in_place_of(found, recorded, live, at)
        if secret is None:
            continue
        value, at = secret["value"], secret.start("value")
        live = live[:at] + found[0] + live[secret.end("value") :]
        at += len(found[0])
        if len(value) >= _SHORTEST and not PLACEHOLDER.search(value):
            live = live.replace(value, found[0])
    return live


def _in_place_of(found: re.Match[str], recorded: str, live: str, at: int) -> re.Match[str] | None:
    """The live value, from `at` on, in the place of a recorded placeholder. The text around it locates it."""
    after = re.escape(recorded[found.end() : found.end() + _AROUND])
    value = rf"(?P<value>\S+?(?={after})|{_VALUE})" if after else rf"(?P<value>{_VALUE})"
    for length in (_AROUND, _NEAR):
        before = recorded[max(0, found.start() - length) : found.start()]
        begins = r"\A" if len(before) < _NEAR else ""
        if secret := re.compile(begins + re.escape(before) + value).search(live, at if not begins else 0):
            return secret
    return None


def spelled(value: Json | Absent) -> str:
    """A value on one line: text unchanged, other values as JSON."""
    if isinstance(value, Absent):
        return "(nothing)"
    text = value if isinstance(value, str) else text_of(value)
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
