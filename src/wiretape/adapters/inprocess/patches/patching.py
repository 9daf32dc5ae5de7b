"""Opens the doors: patches the HTTP libraries that a program has imported or will import, and takes it back.

Nothing is imported that the program has not imported itself.
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

from wiretape.errors import UsageError

# The module whose import makes a library usable -> the door for it.
DOORS = {
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
    """An attribute that is replaced while a context is open. `make` gets what stood there."""

    owner: Any
    name: str
    make: Callable[[Any], Any]


class _Patched(NamedTuple):
    owner: Any
    name: str
    stood: Any  # in the owner itself
    ours: Any


_INHERITED: Final = object()


_lock = threading.RLock()
_users = 0
_patched: dict[str, list[_Patched]] = {}
_left: dict[tuple[int, str], _Patched] = {}  # by owner and name: below what another tool patched, and so still there


def apply_patches() -> None:
    """Counted: the first one patches."""
    global _users
    with _lock:
        _users += 1
        if _users > 1:
            return
        sys.meta_path.insert(0, _FINDER)
        try:
            for name in DOORS:
                if name in sys.modules:
                    _patch(name, sys.modules[name])
        except BaseException:
            remove_patches()
            raise


def remove_patches() -> None:
    """The last one takes every patch back."""
    global _users
    with _lock:
        _users -= 1
        if _users:
            return
        sys.meta_path.remove(_FINDER)
        for patches in _patched.values():
            for patched in reversed(patches):
                _take_back(patched)
        _patched.clear()


def _take_back(patched: _Patched) -> None:
    owner, name, stood, ours = patched
    if _standing(owner, name) is not ours:  # another tool patched after us: ours lets everything pass
        _left[id(owner), name] = patched
    elif stood is _INHERITED:
        delattr(owner, name)
    else:
        setattr(owner, name, stood)


def _patch(name: str, module: ModuleType) -> None:
    with _lock:
        if name in _patched or not _users:
            return
        door = importlib.import_module(f"wiretape.adapters.inprocess.patches.{DOORS[name]}")
        done = _patched[name] = []
        try:
            for patch in door.patches(module):
                done.append(_put(patch))
        except (AttributeError, KeyError) as error:
            version = getattr(module, "__version__", "of this version")
            raise UsageError(
                f"wiretape does not know how to stand behind {name} {version}: it has no {error}\n"
                "  use another version of it, or wiretape's commands `record` and `replay`, which need no patch"
            ) from None


def _put(patch: Patch) -> _Patched:
    owner, name, make = patch
    stood = _standing(owner, name)
    left = _left.pop((id(owner), name), None)
    if left is not None and _leads_to(stood, left.ours):
        return left  # another one above would see everything twice
    ours = make(getattr(owner, name))  # not what `stood`: a wrapper such as wrapt's is called as its owner gives it
    setattr(owner, name, ours)
    return _Patched(owner, name, stood, ours)


def _leads_to(found: Any, ours: Any) -> bool:
    """Whether something that wraps, as far as it can be seen, wraps ours at last."""
    left, seen = [found], set[int]()
    while left:
        one = left.pop()
        if one is ours:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            left += _wrapped(one)
    return False


def _wrapped(one: Any) -> Iterator[Any]:
    if hasattr(type(one), "__wrapped__"):  # a proxy of wrapt's, which says that it is a function
        yield one.__wrapped__
    elif isinstance(one, FunctionType):
        for cell in one.__closure__ or ():
            with suppress(ValueError):  # nothing is in it yet
                yield cell.cell_contents
        yield from one.__defaults__ or ()
    elif isinstance(one, MethodType):
        yield one.__func__
    elif isinstance(one, functools.partial):
        yield one.func


def _standing(owner: Any, name: str) -> Any:
    """An attribute as its owner itself has it. A function's code is in no `__dict__`."""
    return getattr(owner, name) if name == "__code__" else owner.__dict__.get(name, _INHERITED)


class _Finder(MetaPathFinder):
    """Patches a library right after it was imported."""

    def __init__(self) -> None:
        self._looking = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in DOORS or getattr(self._looking, "now", False):
            return None
        self._looking.now = True
        try:
            spec = find_spec(fullname)
        finally:
            self._looking.now = False
        loader = spec.loader if spec is not None else None
        if loader is not None and hasattr(loader, "exec_module"):
            executed = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                executed(module)
                _patch(fullname, module)

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_FINDER = _Finder()


def patched() -> Iterator[str]:
    """The modules whose doors are open."""
    yield from _patched
