"""The Redactor under its old name: `wiretape.tape.redaction` is the place."""

from __future__ import annotations

from wiretape.tape.redaction import Redactor, is_placeholder, matches

__all__ = ["Redactor", "is_placeholder", "matches"]
