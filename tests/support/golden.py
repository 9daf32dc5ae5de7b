"""Compares a screen with the stored one in tests/golden/screens. WIRETAPE_REWRITE_GOLDEN=1 rewrites it."""

from __future__ import annotations

import os
from pathlib import Path

SCREENS = Path(__file__).parent.parent / "golden" / "screens"


def check_screen(name: str, screen: str) -> None:
    """The screen is, to the character, what tests/golden/screens/NAME.txt holds."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get("WIRETAPE_REWRITE_GOLDEN"):
        path.write_text(screen, encoding="utf-8", newline="\n")
    assert path.exists(), f"{path} is missing: WIRETAPE_REWRITE_GOLDEN=1 writes it"
    assert screen == path.read_text(encoding="utf-8"), f"{path.name} differs: WIRETAPE_REWRITE_GOLDEN=1 rewrites it"
