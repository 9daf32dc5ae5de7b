"""Applies and removes the patches of the HTTP libraries that a program imports, now or later.

Only libraries that the program imports are patched.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

from wiretape.adapters.inprocess.patches import _compat

# The module to patch right after its import -> the module of this package with the patches.
PATCHES = {
    "os": "children",
    "subprocess": "children",
    "multiprocessing.spawn": "children",
    "uvloop": "children",
    "threading": "threads",
    "concurrent.futures.thread": "threads",
    "socket": "sockets",
    "http.client": "http_client",
    "httplib2": "http_client",
    "httpx": "httpx",
    "httpx2": "httpx",
    "urllib3.connectionpool": "urllib3",
    "aiohttp": "aiohttp",
    "grpc._channel": "native",
    "grpc.aio._channel": "native",
    "pycurl": "native",
    "websockets.protocol": "websockets",
    "websockets.asyncio.client": "websockets",
    "websockets.sync.client": "websockets",
    "websockets.trio.client": "websockets",
}


class Patch(NamedTuple):
    """An attribute to replace while a context is open. `make` gets the original and returns the replacement."""

    owner: Any
    name: str
    make: Callable[[Any], Any]


class _Applied(NamedTuple):
    owner: Any
    name: str
    original: Any  # as in the owner itself; _INHERITED if the owner inherits it
    replacement: Any


_INHERITED: Final = object()


_lock = threading.RLock()
_users = 0
_applied: dict[str, list[_Applied]] = {}
_buried: dict[tuple[int, str], _Applied] = {}  # by owner and name: another tool patched over ours, so ours remains


def apply_patches() -> None:
    """Apply all patches with the first call. Calls are counted."""
    global _users
    with _lock:
        _users += 1
        if _users > 1:
            return
        sys.meta_path.insert(0, _FINDER)
        try:
            for name in PATCHES:
                if name in sys.modules:
                    _patch(name, sys.modules[name])
        except BaseException:
            remove_patches()
            raise


def remove_patches() -> None:
    """Remove all patches with the last call."""
    global _users
    with _lock:
        _users -= 1
        if _users:
            return
        sys.meta_path.remove(_FINDER)
        for patches in _applied.values():
            for one in reversed(patches):
                _remove(one)
        _applied.clear()


def _remove(applied: _Applied) -> None:
    owner, name, original, replacement = applied
    if _own_attribute(owner, name) is not replacement:  # another tool patched later: ours does nothing from now on
        _buried[id(owner), name] = applied
    elif original is _INHERITED:
        delattr(owner, name)
    else:
        setattr(owner, name, original)


def _patch(name: str, module: ModuleType) -> None:
    with _lock:
        if name in _applied or not _users:
            return
        source = importlib.import_module(f"wiretape.adapters.inprocess.patches.{PATCHES[name]}")
        done = _applied[name] = []
        try:
            for patch in source.patches(module):
                done.append(_apply(patch))
        except (AttributeError, KeyError) as error:
            raise _compat.unsupported(name, error) from None


def _apply(patch: Patch) -> _Applied:
    owner, name, make = patch
    original = _own_attribute(owner, name)
    buried = _buried.pop((id(owner), name), None)
    if buried is not None and _wraps(original, buried.replacement):
        return buried  # a second replacement would see every request twice
    replacement = make(getattr(owner, name))  # through the owner: wrappers of wrapt bind there
    setattr(owner, name, replacement)
    return _Applied(owner, name, original, replacement)


def _wraps(found: Any, ours: Any) -> bool:
    """True if a wrapper calls ours, as far as its parts are visible."""
    left, seen = [found], set[int]()
    while left:
        one = left.pop()
        if one is ours:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            left += _wrapped_by(one)
    return False


def _wrapped_by(one: Any) -> Iterator[Any]:
    if hasattr(type(one), "__wrapped__"):  # a proxy of wrapt, which claims to be a function
        yield one.__wrapped__
    elif isinstance(one, FunctionType):
        for cell in one.__closure__ or ():
            with suppress(ValueError):  # the cell is empty
                yield cell.cell_contents
        yield from one.__defaults__ or ()
    elif isinstance(one, MethodType):
        yield one.__func__
    elif isinstance(one, functools.partial):
        yield one.func


def _own_attribute(owner: Any, name: str) -> Any:
    """An attribute in the owner itself, or _INHERITED. The code of a function is not in its `__dict__`."""
    return getattr(owner, name) if name == "__code__" else owner.__dict__.get(name, _INHERITED)


class _Finder(MetaPathFinder):
    """Patches a library right after its import."""

    def __init__(self) -> None:
        self._finding = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in PATCHES or getattr(self._finding, "now", False):
            return None
        self._finding.now = True
        try:
            spec = find_spec(fullname)
        finally:
            self._finding.now = False
        loader = spec.loader if spec is not None else None
        if loader is not None and hasattr(loader, "exec_module"):
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _patch(fullname, module)

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_FINDER = _Finder()
