"""Secrets and their placeholders: what is taken out of a tape and its journal, and what stands there instead."""

from wiretape.tape.redaction.arguments import Regions
from wiretape.tape.redaction.evidence import worth_learning
from wiretape.tape.redaction.placeholders import PLACEHOLDER, fixed_parts, is_placeholder, kinds_in, matches
from wiretape.tape.redaction.redactor import Redactor

__all__ = [
    "PLACEHOLDER",
    "Redactor",
    "Regions",
    "fixed_parts",
    "is_placeholder",
    "kinds_in",
    "matches",
    "worth_learning",
]
