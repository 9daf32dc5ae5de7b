"""The public face: every module imports by itself, says what may live in it, and exports what it promises."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import warnings
from pathlib import Path

import click
import pytest

import wiretape
from wiretape.cli.main import COMMANDS, module_of

SRC = Path(__file__).parent.parent / "src"
MODULES = sorted(
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    for path in (SRC / "wiretape").rglob("*.py")
)
NEED_MITMPROXY = "wiretape.adapters.mitm"
HAS_MITMPROXY = importlib.util.find_spec("mitmproxy") is not None


@pytest.mark.parametrize("name", MODULES)
def test_every_module_imports_by_itself_and_opens_with_a_docstring(name: str) -> None:
    if name.startswith(NEED_MITMPROXY) and not HAS_MITMPROXY:
        pytest.skip("mitmproxy is not installed: it needs Python 3.12 and the extra `proxy`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mitmproxy's dependencies warn of one another
        module = importlib.import_module(name)
    assert module.__doc__ or Path(str(module.__file__)).stat().st_size == 0, f"{name} has no docstring"


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_promises_it_has(name: str) -> None:
    path = SRC / (name.replace(".", "/") + ".py")
    source = (path if path.exists() else SRC / name.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
    if "__all__" not in source:
        return
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert not [promised for promised in module.__all__ if not hasattr(module, promised)]


def test_the_version_is_the_package_s() -> None:
    from importlib.metadata import version

    assert wiretape.__version__ == version("wiretape")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_module_that_defines_it(name: str) -> None:
    command = importlib.import_module(f"wiretape.cli.{module_of(name)}").command
    assert isinstance(command, click.Command)


def test_no_module_of_the_command_line_is_an_unlisted_command() -> None:
    defined = {
        path.stem
        for path in (SRC / "wiretape" / "cli").glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == "command"
    }
    assert defined == set(map(module_of, COMMANDS))
