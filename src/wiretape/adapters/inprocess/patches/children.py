"""Add environment variables to child processes that are started inside a context, so that they use its tape.

Every API that starts a program ends in one of the patched functions. `os.environ` does not change.

| API | patched function |
|---|---|
| subprocess, asyncio, os.popen, trio, anyio | `subprocess._fork_exec`, or `os.posix_spawn` |
| os.spawn*, pty.spawn, os.exec* | `os.execv`, `os.execve` (after a fork, in the copy) |
| os.system | `os.system` |
| multiprocessing: spawn, forkserver | `multiprocessing.spawn.get_preparation_data` |
| uvloop, whose processes are started in C | `Loop.subprocess_exec`, `Loop.subprocess_shell` |

The server process of multiprocessing's forkserver is not changed: it outlives the context.
"""

from __future__ import annotations

import os
import shlex
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from wiretape.adapters.inprocess.active_context import before_fork, child_variables
from wiretape.adapters.inprocess.patches import _compat
from wiretape.adapters.inprocess.patches.patching import Patch


def patches(module: ModuleType) -> list[Patch]:
    return list(_PATCHES[module.__name__](module))


def environment(environ: Mapping[Any, Any] | None) -> dict[str, str] | None:
    """The environment for a child that starts with `environ` (None: that of this process). None: do not change it."""
    own = dict(os.environ)
    given = own if environ is None else {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()}
    added = child_variables(given)
    if not added:
        return None
    # A value that differs from this process was chosen by the program, and stays. Names are compared without case:
    # clients read `https_proxy` as well as `HTTPS_PROXY`.
    chosen = {name.upper() for name, value in given.items() if own.get(name) != value}
    return {**given, **{name: value for name, value in added.items() if name.upper() not in chosen}}


# os


def _of_os(module: ModuleType) -> Iterator[Patch]:
    if os.name != "posix":
        return
    yield Patch(module, "system", _system)
    yield Patch(module, "execv", _execv)
    yield Patch(module, "execve", _execve)
    for name in ("posix_spawn", "posix_spawnp"):
        if hasattr(module, name):
            yield Patch(module, name, _posix_spawn)
    for name in ("fork", "forkpty"):
        if hasattr(module, name):
            yield Patch(module, name, _fork)


def _system(original: Callable[[Any], int]) -> Callable[[Any], int]:
    """Set the variables in the command: C has one environment for the whole process."""

    def system(command: Any) -> int:
        extended = environment(None)
        if extended is None:
            return original(command)
        changed = [(name, value) for name, value in extended.items() if os.environ.get(name) != value]
        exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in changed)
        return original(exports + os.fsdecode(command))

    return system


def _execv(original: Callable[..., Any]) -> Callable[..., Any]:
    def execv(path: Any, argv: Any, /) -> Any:
        extended = environment(None)
        return original(path, argv) if extended is None else os.execve(path, argv, extended)

    return execv


def _execve(original: Callable[..., Any]) -> Callable[..., Any]:
    def execve(path: Any, argv: Any, env: Any) -> Any:
        return original(path, argv, environment(env) or env)

    return execve


def _posix_spawn(original: Callable[..., int]) -> Callable[..., int]:
    def posix_spawn(path: Any, argv: Any, env: Any, /, **how: Any) -> int:
        return original(path, argv, environment(env) or env, **how)

    return posix_spawn


def _fork(original: Callable[[], Any]) -> Callable[[], Any]:
    """Prepare the contexts. Suppress Python's warning about forks with threads if only wiretape has threads."""

    def fork() -> Any:
        before_fork()
        others = [one for one in threading.enumerate() if one is not threading.current_thread()]
        if not all(one.name.startswith("wiretape-") for one in others):
            return original()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return original()

    return fork


# other modules


def _of_subprocess(module: ModuleType) -> Iterator[Patch]:
    if hasattr(module, _compat.SUBPROCESS_START):
        yield Patch(module, _compat.SUBPROCESS_START, _fork_exec)


def _fork_exec(original: Callable[..., int]) -> Callable[..., int]:
    """The sixth argument is the environment: a list of `b"NAME=value"`, or None."""

    def fork_exec(*args: Any) -> int:
        given = None if args[5] is None else dict(one.split(b"=", 1) for one in args[5])
        extended = environment(given)
        if extended is None:
            return original(*args)
        return original(*args[:5], [os.fsencode(f"{name}={value}") for name, value in extended.items()], *args[6:])

    return fork_exec


def _of_multiprocessing(module: ModuleType) -> Iterator[Patch]:
    yield Patch(module, "get_preparation_data", _prepared)


def _prepared(original: Callable[[str], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    """A process of multiprocessing unpickles these data before it imports the program."""

    def get_preparation_data(name: str) -> dict[str, Any]:
        extended = environment(None)
        return {**original(name), **({"wiretape": _Environment(extended)} if extended is not None else {})}

    return get_preparation_data


class _Environment:
    """Sets variables in the process that unpickles it, without importing wiretape."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = {name: value for name, value in variables.items() if os.environ.get(name) != value}

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (f"import os; os.environ.update({self._variables!r})",)


def _of_uvloop(module: ModuleType) -> Iterator[Patch]:
    for name in ("subprocess_exec", "subprocess_shell"):
        yield Patch(module.Loop, name, _starting)


def _starting(original: Callable[..., Any]) -> Callable[..., Any]:
    def starting(loop: Any, *args: Any, **how: Any) -> Any:
        extended = environment(how.get("env"))
        return original(loop, *args, **(how if extended is None else {**how, "env": extended}))

    return starting


_PATCHES: dict[str, Callable[[ModuleType], Iterator[Patch]]] = {
    "os": _of_os,
    "subprocess": _of_subprocess,
    "multiprocessing.spawn": _of_multiprocessing,
    "uvloop": _of_uvloop,
}
