"""Programs in a sealed network, if the system supports it."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import pytest

from wiretape.adapters.sealed.network import SealedNetwork, make_sealed_network
from wiretape.errors import UsageError

# Small programs need nothing that is installed: they start in half the time.
PYTHON = (sys.executable, "-I", "-S", "-c")


@functools.cache
def why_not() -> str | None:
    """Why no network can be sealed here; None: one can."""
    try:
        make_sealed_network([]).close()
    except UsageError as error:
        return str(error).splitlines()[0]
    return None


def need_sealing() -> None:
    """Skip a test if the system or container forbids network namespaces."""
    if reason := why_not():
        pytest.skip(reason)


def inside(seal: SealedNetwork, code: str, *arguments: str, env: dict[str, str] | None = None, **how: Any) -> str:
    """What a Python program prints that runs in the network to its end."""
    argv = [*PYTHON, code, *arguments]
    process = seal.start(argv, executable=sys.executable, env=env or {}, stdout=subprocess.PIPE, **how)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return str(said.decode())
