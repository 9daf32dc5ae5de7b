"""Imports point down only (design, layers), and heavy libraries are imported only where they are used."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "wiretape"
LAYERS = {
    "cli": 7,
    "adapters": 6,
    "views": 5,
    "analyze": 4,
    "replay": 4,
    "debug": 4,
    "loop": 3,
    "wire": 2,
    "tape": 2,
    "model": 1,
    "errors": 0,
}
SANS_IO = ("analyze", "replay", "debug", "loop", "wire", "tape", "model", "errors")
NEVER_BELOW_VIEWS = {"socket", "asyncio", "httpx", "httpx2", "mitmproxy", "uvicorn", "click", "rich", "subprocess"}
FILES = sorted(SRC.rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(SRC).with_suffix("").parts[0]


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module or "")
            if node.module == "wiretape":
                found += [f"wiretape.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_down(path: Path) -> None:
    here = place(path)
    if here not in LAYERS:  # __init__, the public face
        return
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "wiretape" or len(parts) == 1 or parts[1] not in LAYERS:
            continue
        there = parts[1]
        assert here == there or LAYERS[there] < LAYERS[here], f"{here} must not import {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_no_lower_layer_reaches_up_through_the_public_face(path: Path) -> None:
    if place(path) in (*SANS_IO, "views"):
        plain = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Import)]
        assert "wiretape" not in [alias.name for node in plain for alias in node.names]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_lower_layers_are_sans_io(path: Path) -> None:
    if place(path) in SANS_IO:
        heavy = {name.split(".")[0] for name in imports(path)} & NEVER_BELOW_VIEWS
        assert not heavy, f"{path.relative_to(SRC)} imports {heavy}"


def test_mitmproxy_is_imported_by_its_adapters_only() -> None:
    users = {p.relative_to(SRC).as_posix() for p in FILES if any(n.split(".")[0] == "mitmproxy" for n in imports(p))}
    assert all(user.startswith(("adapters/mitm", "adapters/importers/mitm_flows.py")) for user in users), users
