"""Replays a case with a changed prompt: the replay must miss, and the miss must show the change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.clients.cases import TASK

ADDED = "and the LICENSE"
_ITS_PROMPT = re.compile(r'^PROMPT = "(.*)"$', re.MULTILINE)  # of a Python program


def changed_command(command: Sequence[str], scratch: Path) -> list[str]:
    """Return the command with ADDED in its prompt: in its arguments, or in a copy of its script in `scratch`."""
    prompts = [word for word in command if word == TASK or word.startswith("PARENT:")]
    if prompts:
        return [f"{word} {ADDED}" if word in prompts else word for word in command]
    script = next(word for word in command if word.endswith(".py"))
    text, count = _ITS_PROMPT.subn(rf'PROMPT = "\1 {ADDED}"', Path(script).read_text("utf-8"))
    if not count:
        raise ValueError(f"{script} has no prompt to change")
    copy = scratch / Path(script).name
    copy.write_text(text, encoding="utf-8")
    return [str(copy) if word == script else word for word in command]


def verdict_of_changed(code: int | str, misses: Sequence[str]) -> str:
    """Return `ok`, or the fault of a replay with a changed prompt."""
    if not misses:
        return f"a changed prompt was not missed, the replay ended with {code}"
    if code == 0:
        return "a changed prompt was missed, but the replay ended with 0"
    live = [line for miss in misses for line in miss.splitlines() if line.lstrip().startswith("live ")]
    return "ok" if any(ADDED in line for line in live) else "a changed prompt was missed, but not named"
