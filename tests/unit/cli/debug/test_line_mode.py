"""Where one command of a script ends and the next begins."""

from __future__ import annotations

import pytest

from wiretape.cli.debug.line_mode import split


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("break 3; continue; print usage", ["break 3", "continue", "print usage"]),
        ("break 3\ncontinue\n\n", ["break 3", "continue"]),
        ('break text~"a;b"; c', ['break text~"a;b"', "c"]),
        ("break text ~ /a;b/; c", ["break text ~ /a;b/", "c"]),
        ("search don't; c", ["search don't", "c"]),
        ("# first; second\nc # not here", ["c # not here"]),
        ("note it's 5; c; note that's it", ["note it's 5", "c", "note that's it"]),
        ("p request.messages['a;b']; n", ["p request.messages['a;b']", "n"]),
        (" ; ;; ", []),
        ("", []),
    ],
)
def test_a_script(text: str, commands: list[str]) -> None:
    assert split(text) == commands
