"""Imports point down only (docs/architecture.md), and heavy libraries are imported only where they are used."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "wiretape"
LAYERS = {
    "cli": 9,
    "adapters.pytest": 9,
    "adapters.tui": 9,
    "app": 8,
    "library": 8,
    "plugin": 8,
    "adapters": 7,
    "demo": 7,
    "views": 6,
    "analyze": 5,
    "matching": 5,
    "debug": 5,
    "rerun": 5,
    "compare": 4,
    "runs": 3,
    "wire": 2,
    "tape": 2,
    "model": 1,
    "errors": 0,
    "_version": 0,
    "_plugins": 0,
}
SANS_IO = tuple(name for name, level in LAYERS.items() if level <= LAYERS["analyze"])
NEVER_BELOW_VIEWS = {"socket", "asyncio", "httpx", "httpx2", "mitmproxy", "httptools", "click", "rich", "subprocess"}
# Importers read the files that mitmproxy writes.
MITMPROXY = ("adapters/mitm/", "adapters/importers/mitm_flows.py")
FILES = sorted(SRC.rglob("*.py"))


def layer(parts: tuple[str, ...]) -> str | None:
    """The layer of a module: its name without `wiretape`, taken apart. None for the public face."""
    for length in range(len(parts), 0, -1):
        if (name := ".".join(parts[:length])) in LAYERS:
            return name
    return None


def place(path: Path) -> str | None:
    return layer(path.relative_to(SRC).with_suffix("").parts)


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module or "")
            if node.module in ("wiretape", "wiretape.adapters"):
                found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_down(path: Path) -> None:
    here = place(path)
    if here is None:
        return
    for name in imports(path):
        first, *rest = name.split(".")
        there = layer(tuple(rest)) if first == "wiretape" else None
        if there is not None:
            assert here == there or LAYERS[there] < LAYERS[here], f"{here} must not import {name}"


def test_every_folder_has_its_layer() -> None:
    assert not [
        folder.name for folder in SRC.iterdir() if (folder / "__init__.py").exists() and folder.name not in LAYERS
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_no_lower_layer_reaches_up_through_the_public_face(path: Path) -> None:
    if place(path) in (*SANS_IO, "views"):
        plain = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Import)]
        assert "wiretape" not in [alias.name for node in plain for alias in node.names]
        assert "wiretape" not in imports(path), "import __version__ from wiretape._version"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_lower_layers_are_sans_io(path: Path) -> None:
    if place(path) in SANS_IO:
        heavy = {name.split(".")[0] for name in imports(path)} & NEVER_BELOW_VIEWS
        assert not heavy, f"{path.relative_to(SRC)} imports {heavy}"


def test_mitmproxy_is_imported_by_its_adapters_only() -> None:
    users = {p.relative_to(SRC).as_posix() for p in FILES if any(n.split(".")[0] == "mitmproxy" for n in imports(p))}
    assert all(user.startswith(MITMPROXY) for user in users), users
