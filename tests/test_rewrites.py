"""No module truncates a file in place: whoever rewrites one goes through `wiretape.tape.atomic`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "wiretape"
FORBIDDEN = {"write_text", "write_bytes", "truncate", "ftruncate", "rename", "replace", "renames", "copyfile", "move"}
ALLOWED = {
    ("tape/atomic.py", "os.replace"): "the function itself",
    ("tape/atomic.py", "open(…, 'wb')"): "a device or a pipe has nothing to lose, and cannot be renamed onto",
    ("tape/atomic.py", "open(…, 'rb+')"): "takes a lock",
    ("adapters/update/staged_recording.py", "recording.open(…, 'rb+')"): "takes a lock",
    ("tape/storage.py", "self.replace"): "goes through atomic",
    ("tape/storage.py", "os.ftruncate"): "takes back what a failed append has written",
    ("tape/journal/journal.py", "os.ftruncate"): "takes back what a failed append has written",
    ("cli/tapes.py", "spool.write_bytes"): "a new file in a temporary directory",
    ("cli/streams.py", "_Sink(…, 'wb')"): "a standard stream",
    ("cli/edit/merge_driver.py", "shutil.copyfile"): "new files in a temporary directory",
    ("adapters/sealed/namespace_program.py", "open(…, 'wb')"): "a file of the kernel's in /proc",
    ("adapters/update/staged_recording.py", "shutil.copyfile"): "makes a new file, which takes no other's place yet",
    ("adapters/update/staged_recording.py", "shutil.move"): "out of the way, under a name in pytest's cache",
}


def rewrites(source: str) -> Iterator[str]:
    """The calls that truncate or replace a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "O_TRUNC":
            yield "O_TRUNC"
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        owner, _, method = name.rpartition(".")
        words = [arg.value for arg in (*node.args, *(k.value for k in node.keywords)) if isinstance(arg, ast.Constant)]
        modes = [w for w in words if isinstance(w, str) and w and set(w) <= set("rwbxt+") and set(w) & set("wx+")]
        if method.lower().endswith(("open", "fdopen", "sink")) and modes:
            yield f"{name}(…, {modes[0]!r})"
        if method in FORBIDDEN and owner and not _is_of_a_value(owner, method, node):
            yield name


def _is_of_a_value(owner: str, method: str, call: ast.Call) -> bool:
    """`text.replace(a, b)` and `line.truncate(width)` change no file; `path.replace(target)` has one argument."""
    if owner in ("os", "shutil"):
        return False
    return (method == "replace" and (len(call.args) != 1 or bool(call.keywords))) or owner in ("line", "file", "copy")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open(p, 'w')", ["open(…, 'w')"]),
        ("p.open('rb+')", ["p.open(…, 'rb+')"]),
        ("p.open(mode='w')", ["p.open(…, 'w')"]),
        ("open(p, 'ab'); open(p); open(p, 'rb')", []),
        ("p.write_text(x)", ["p.write_text"]),
        ("os.ftruncate(d, 0)", ["os.ftruncate"]),
        ("os.open(p, os.O_RDWR | os.O_TRUNC)", ["O_TRUNC"]),
        ("os.replace(a, b)", ["os.replace"]),
        ("a.replace(b)", ["a.replace"]),
        ("text.replace('a', 'b')", []),
    ],
)
def test_rewrites_are_found(source: str, found: list[str]) -> None:
    assert list(rewrites(source)) == found


def test_no_module_rewrites_a_file_in_place() -> None:
    found = {
        (str(path.relative_to(SOURCE)), what)
        for path in SOURCE.rglob("*.py")
        for what in rewrites(path.read_text(encoding="utf-8"))
    }
    assert found - set(ALLOWED) == set()
    assert set(ALLOWED) - found == set(), "an exception that no module needs any more"
