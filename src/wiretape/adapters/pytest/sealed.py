"""`--wiretape-sealed`: run pytest again in a network that has only loopback and the allowed hosts.

The outer process remains: it serves the sealed network, connects to the hosts of `wiretape_allow_hosts`, and returns
the exit code of the inner run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from wiretape._version import __version__
from wiretape.adapters.launch.child import run_child
from wiretape.adapters.output import say
from wiretape.adapters.pytest.options import SEALED
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.adapters.routing.hosts import is_loopback, provider_within
from wiretape.adapters.sealed.network import SealedNetwork
from wiretape.errors import UsageError, WiretapeError
from wiretape.matching.report import ReplayReport
from wiretape.matching.session import ReplaySession
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import Tape

_MOST_LINES: Final = 10


def check_hosts(hosts: Sequence[str], config: pytest.Config) -> None:
    """Raise UsageError if a marker allows a host that is unreachable in this sealed run. Loopback always works."""
    known = config.getini("wiretape_allow_hosts")
    lacking = [host for host in hosts if host not in known and not is_loopback(host.partition(":")[0])]
    if lacking:
        raise UsageError(
            f"allow_hosts={lacking!r} is not reachable: this run was sealed before it read the marker\n"
            "  add it to wiretape_allow_hosts in the configuration of pytest, or run with --no-wiretape-sealed"
        )


def run_sealed(config: pytest.Config) -> int:
    """Run this pytest in a sealed network. Return its exit code. Raises pytest.UsageError if sealing is impossible."""
    hosts = [host.strip() for host in config.getini("wiretape_allow_hosts")]
    for host in hosts:
        if (provider := provider_within(host)) is not None:
            raise pytest.UsageError(
                f"wiretape_allow_hosts = {host} includes {provider}, which serves models\n"
                "  a sealed run blocks models: use a narrower pattern"
            )
    if config.invocation_params.plugins:
        raise pytest.UsageError("--wiretape-sealed starts pytest again, and cannot pass on pytest.main(plugins=[…])")
    header = Header(wiretape=VERSION, started=datetime.now(UTC), recorder=f"wiretape {__version__}")
    session = ReplaySession([Tape(None, header, ())])  # distinguishes models from other hosts
    try:
        replaying = ReplayServer(session, ReplayServerOptions(let_through=hosts, trouble=say, sealed=True))
    except WiretapeError as error:
        raise pytest.UsageError(str(error).replace("--sealed", "--wiretape-sealed")) from None
    assert replaying.sealed_network is not None
    with replaying:
        code = _run(replaying.sealed_network, _command(config.invocation_params.args))
    report = session.report()
    for line in _refused(report):
        say(line)
    return code or (pytest.ExitCode.TESTS_FAILED if report.missed else pytest.ExitCode.OK)


def _run(seal: SealedNetwork, command: Sequence[str]) -> int:
    environ = {**os.environ, SEALED: str(os.fstat(seal.network).st_ino)}
    try:
        return run_child(command, environ, start=seal.start)
    except WiretapeError as error:
        raise pytest.UsageError(f"--wiretape-sealed: {error}") from None


def _command(args: Sequence[str]) -> list[str]:
    """The command line of this process: if it is pytest, with the options of the interpreter and `coverage run`."""
    started = Path(sys.argv[0])
    if started.stem in ("pytest", "py.test") or started.parts[-2:] == ("pytest", "__main__.py"):
        return [sys.executable, *sys.orig_argv[1:]]
    return [sys.executable, "-m", "pytest", *map(str, args)]


def _refused(report: ReplayReport) -> list[str]:
    """Lines about refused connections."""
    lines = [f"the sealed run failed: it tried to reach a model: {missed.what}" for missed in report.missed]
    lines += [f"refused in the sealed network: {stray.what}" for stray in report.strayed]
    more = len(lines) - _MOST_LINES
    return lines[:_MOST_LINES] + ([f"and {more} more were refused"] if more > 0 else [])
