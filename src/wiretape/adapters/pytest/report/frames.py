"""Where in a person's own code a call was made: below the rootdir of pytest, and neither installed nor wiretape."""

from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Final

import wiretape
from wiretape.adapters.pytest.tape_paths import shown

_OF_WIRETAPE: Final = Path(wiretape.__file__).parent
_INSTALLED: Final = frozenset(("site-packages", "dist-packages"))
_RUNNERS: Final = ("_pytest.", "pluggy.")  # what is outside of these has called pytest, not the model


def asked_at(root: Path) -> str | None:
    """`tests/agent.py:31`: the innermost frame of the person's own of this thread. None: there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith(_RUNNERS):
        if _is_own(frame.f_code.co_filename, root):
            return f"{shown(Path(frame.f_code.co_filename))}:{frame.f_lineno}"
        frame = frame.f_back
    return None


@lru_cache(4096)
def _is_own(name: str, root: Path) -> bool:
    path = Path(name)
    if not path.is_relative_to(root) or _INSTALLED & set(path.parts):
        return False
    elsewhere = [_OF_WIRETAPE, Path(sysconfig.get_path("stdlib"))]
    if Path(sys.prefix).is_relative_to(root):  # an environment inside the project
        elsewhere.append(Path(sys.prefix))
    return not any(path.is_relative_to(place) for place in elsewhere)
