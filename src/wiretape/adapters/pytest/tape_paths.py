"""The path of a test's tape. It depends only on the name of the test: the same in every run and on every machine.

Loaded in every pytest run: import nothing heavy here.
"""

from __future__ import annotations

import os
import re
import unicodedata
from hashlib import blake2b
from pathlib import Path
from typing import Final

import pytest

from wiretape.adapters.pytest.options import named_by

SUFFIXES: Final = (".tape", ".tape.zst")
_LONGEST: Final = 120  # characters of a file name, so that `.journal` and the like still fit
_NOT_IN_NAMES = re.compile(r"[^\w.,=+@()\[\]-]+")


def tape_directory(config: pytest.Config) -> Path:
    return config.rootpath / str(config.getini("wiretape_dir"))


def tape_of(item: pytest.Item) -> Path:
    """The tape of a test: the name in its marker, or `captures/MODULE/TEST[PARAMETERS].tape`."""
    name = named_by(item)
    if name is None:
        return tape_directory(item.config) / _own_place(item)
    if not name.endswith(SUFFIXES):
        name += SUFFIXES[0]
    return Path(os.path.normpath(tape_directory(item.config) / name))


def shown(path: Path) -> Path:
    """The path relative to the working directory, if it is below."""
    try:
        here = Path.cwd()
    except OSError:  # a test deleted its working directory
        return path
    return path.relative_to(here) if path.is_relative_to(here) else path


def twins(tape: Path) -> list[Path]:
    """Tapes in the same directory whose names differ only in case: many file systems take them for one file."""
    folded = tape.name.casefold()
    return sorted(path for path in tape.parent.iterdir() if path.name != tape.name and path.name.casefold() == folded)


def _own_place(item: pytest.Item) -> Path:
    root, path = item.config.rootpath, item.path.with_suffix("")
    parts = path.relative_to(root).parts if path.is_relative_to(root) else (path.name,)
    if len(parts) > 1 and parts[0] in ("test", "tests"):
        parts = parts[1:]
    around = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    return Path(*parts, file_name(".".join([*around, item.name])) + SUFFIXES[0])


def file_name(name: str) -> str:
    """A name that is valid on every file system. A name that had to be changed gets a hash, which keeps it unique."""
    name = unicodedata.normalize("NFC", name)
    made = _NOT_IN_NAMES.sub("-", name)
    if made == name and len(made) <= _LONGEST and not made.startswith("."):
        return made
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{made[:_LONGEST].strip('.-')}-{digest}"
