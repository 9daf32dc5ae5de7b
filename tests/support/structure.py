"""Facts about the source: folders, public classes, imports across packages, private names of other projects.

`tests/test_structure.py` holds the rules; here is only what they look at.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "wiretape"
MOST_MODULES = 16
_PRIVATE = re.compile(r"_[A-Za-z]\w*")
_NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}  # public, in spite of the underscore
_BY_NAME = {"getattr", "setattr", "delattr", "hasattr", "Patch"}  # calls that take an attribute's name


@cache
def modules() -> dict[str, ast.Module]:
    """Every module below wiretape by its dotted name; a package by its own."""
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return found


@cache
def packages() -> frozenset[str]:
    return frozenset(
        ".".join(path.parent.relative_to(SRC.parent).parts) for path in SRC.rglob("*.py") if path.parent.is_dir()
    )


def package_of(module: str) -> str:
    return module if module in packages() else module.rpartition(".")[0]


def mutual_folders() -> set[tuple[str, str]]:
    """Pairs of packages of which each imports the other; a package and what it contains are not a pair."""
    arrows = {
        (package_of(module).removeprefix("wiretape."), package_of(name).removeprefix("wiretape."))
        for module in modules()
        for name in imported(module)
    }
    return {
        (a, b)
        for a, b in arrows
        if (b, a) in arrows and a < b and not f"{b}.".startswith(f"{a}.") and "wiretape" not in (a, b)
    }


@cache
def imported(module: str) -> tuple[str, ...]:
    """The modules of wiretape that a module imports, lazy imports and those for type checkers included."""
    return tuple(dict.fromkeys(_imported(module)))


def _imported(module: str) -> Iterator[str]:
    for node in ast.walk(modules()[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in modules() or node.module in modules():
                    yield full if full in modules() else node.module


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@cache
def from_outside() -> tuple[tuple[str, str, str], ...]:
    """(importer, package, name): imports that reach into a package from outside, at each level that they cross."""
    found = []
    for module in modules():
        for name in imported(module):
            parts = name.split(".")
            for depth in range(1, len(parts)):
                package = ".".join(parts[:depth])
                if not inside(module, package):
                    found.append((module, package, parts[depth]))
    return tuple(found)


def face(package: str) -> list[str] | None:
    """`__all__` of a package, or None."""
    for node in modules()[package].body:
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        if isinstance(target, ast.Name) and target.id == "__all__" and isinstance(node, ast.Assign | ast.AnnAssign):
            value: list[str] = ast.literal_eval(node.value) if node.value is not None else []
            return value
    return None


def crowded() -> dict[str, int]:
    """Folders that hold more modules than one looks through at a glance."""
    count: dict[str, int] = defaultdict(int)
    for path in SRC.rglob("*.py"):
        if path.name != "__init__.py":
            count[path.parent.relative_to(SRC).as_posix()] += 1
    return {folder: number for folder, number in sorted(count.items()) if number > MOST_MODULES}


def duplicate_classes() -> dict[str, list[str]]:
    """Public classes whose name is defined more than once, with the modules that define it."""
    places = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.removeprefix("wiretape."))
    return {name: sorted(where) for name, where in sorted(places.items()) if len(where) > 1}


def foreign_private_names() -> dict[str, list[str]]:
    """Private names of other projects that a module uses, outside of modules and packages called `_compat`.

    A private name counts as foreign if neither the module nor its imports define it.
    """
    defined = {module: set(_defined(tree)) for module, tree in modules().items()}
    found = {}
    for module, tree in modules().items():
        if "_compat" in module.split("."):
            continue
        own = _NAMED_TUPLE.union(defined[module], *(defined[name] for name in imported(module)))
        if names := sorted({name for name in _used(tree) if name.rpartition(".")[2] not in own}):
            found[module.removeprefix("wiretape.")] = names
    return found


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)):
                yield name
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=ast.Tuple(elts=elements)):
                yield from (one.value for one in elements if isinstance(one, ast.Constant))


def _used(tree: ast.Module) -> Iterator[str]:
    standard = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in sys.stdlib_module_names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=base)) if base in standard:
                continue
            case ast.Attribute(attr=name) if _PRIVATE.fullmatch(name):
                yield name
            case ast.Call(func=ast.Name(id=name), args=args) if name in _BY_NAME:
                texts = [one.value for one in args if isinstance(one, ast.Constant)]
                yield from (text for text in texts if isinstance(text, str) and _PRIVATE.fullmatch(text))
            case ast.ImportFrom(module=str(name), names=names) if not name.startswith("wiretape"):
                yield from (name for part in name.split(".") if _PRIVATE.fullmatch(part))
                yield from (alias.name for alias in names if _PRIVATE.fullmatch(alias.name))


def present() -> dict[str, object]:
    """Print the exception lists of `tests/test_structure.py` as they would be now."""
    return {
        "CROWDED": crowded(),
        "DUPLICATE_CLASSES": duplicate_classes(),
        "FOREIGN_PRIVATE_NAMES": foreign_private_names(),
    }
