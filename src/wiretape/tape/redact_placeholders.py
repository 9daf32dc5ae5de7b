"""Placeholders under their old name: `wiretape.tape.redaction` is the place."""

from __future__ import annotations

from wiretape.tape.redaction import PLACEHOLDER, fixed_parts, is_placeholder, kinds_in, matches

__all__ = ["PLACEHOLDER", "fixed_parts", "is_placeholder", "kinds_in", "matches"]
