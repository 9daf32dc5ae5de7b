"""Every registered format is explained in the documentation."""

from __future__ import annotations

from pathlib import Path

from wiretape._plugins import FORMATS
from wiretape.wire.base import Claim
from wiretape.wire.registry import built_in

PAGE = (Path(__file__).parents[3] / "docs" / "wire-formats.md").read_text(encoding="utf-8")


def test_every_format_is_named_in_the_documentation() -> None:
    for form in built_in():
        assert f"| `{form.name}` |" in PAGE, f"docs/wire-formats.md does not explain {form.name}"


def test_the_documentation_names_what_a_plugin_needs() -> None:
    assert FORMATS.group in PAGE
    for member in ("claims", "claims_response", "decode", "decode_request", "error", "volatile"):
        assert member in PAGE
    for claim in (Claim.PATH, Claim.BODY, Claim.CERTAIN):
        assert claim.name in PAGE
