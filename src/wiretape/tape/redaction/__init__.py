"""Redaction: find the secrets in tapes and journals, and replace each with a placeholder."""

from wiretape.tape.redaction.arguments import Regions
from wiretape.tape.redaction.placeholders import PLACEHOLDER, fixed_parts, is_placeholder, kinds_in, matches
from wiretape.tape.redaction.redactor import Redactor
from wiretape.tape.redaction.secret_likeness import worth_learning

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
