"""The limit of open files: raised here, kept for programs, and reported once where it is reached."""

from __future__ import annotations

import errno
import logging
import select
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest
from tests.support.proxying import PATIENCE_S

from wiretape.adapters.open_files import reported_once

SHOW = "import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
RAISED = f"""
import resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 500))
from wiretape.adapters.open_files import raise_limit, usual_limit
with usual_limit():
    print(*resource.getrlimit(resource.RLIMIT_NOFILE), "before")
print(raise_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)
with usual_limit():
    subprocess.run([sys.executable, "-c", {SHOW!r}])
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""
SERVER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (40, int(sys.argv[1])))
from wiretape.adapters.open_files import raise_limit
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.matching.session import ReplaySession
raise_limit()
with ReplayServer(ReplaySession([]), ReplayServerOptions(trouble=print)) as replaying:
    print(replaying.port, flush=True)
    sys.stdin.read()
"""

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")


@posix
def test_the_limit_is_raised_here_and_kept_for_programs() -> None:
    done = subprocess.run([sys.executable, "-c", RAISED], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["200 500 before", "200 500 500", "200 500", "500 500"]


def asked(most: int, connections: int, patience: float) -> tuple[int, str, str]:
    """How many connections a server answers that may open `most` files, and what it prints."""
    command = [sys.executable, "-c", SERVER, str(most)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as server, ExitStack() as opened:  # type: ignore[call-overload]
        port = int(server.stdout.readline())
        made = [opened.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(connections)]
        for one in made:
            one.sendall(b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        readable = set()
        while len(readable) < connections and (more := select.select(made, [], [], patience)[0]):
            readable.update(more)
            made = [one for one in made if one not in readable]
        opened.close()
        return len(readable), *server.communicate()


@posix
def test_a_server_answers_more_connections_than_the_usual_limit_permits() -> None:
    assert asked(4000, 100, PATIENCE_S) == (100, "", "")


@pytest.mark.slow
@posix
def test_too_many_connections_are_reported_once_without_a_traceback() -> None:
    """Each connection that cannot be accepted is an error to the event loop, again and again."""
    answered, out, err = asked(40, 100, 1)
    assert 0 < answered < 100
    assert out.count("too many open files") == 1
    assert err == ""


def test_other_errors_are_logged_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    log = logging.getLogger("asyncio")
    with reported_once(told.append):
        for number in (errno.EMFILE, errno.EPIPE, errno.ENFILE):
            try:
                raise OSError(number, "failed")
            except OSError:
                log.exception("error %d", number)
    assert [record.getMessage() for record in caplog.records] == [f"error {errno.EPIPE}"]
    (text,) = told
    assert text.startswith("too many open files: ")
