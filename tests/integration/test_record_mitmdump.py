"""wiretape as a script of a mitmproxy that is running already."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.certificates import make_authority
from tests.support.upstream import CHAT_EVENTS, Upstream

from wiretape.model.http import Ended, body_bytes
from wiretape.tape.reading.reader import read_tape

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
MITMDUMP = [sys.executable, "-c", "from mitmproxy.tools.main import mitmdump; mitmdump()"]


@cache
def script() -> str:
    found = subprocess.run(
        [sys.executable, "-m", "wiretape.adapters.mitm.script"], capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


def mitmdump(home: Path, port: int, *options: str) -> subprocess.Popen[str]:
    settings = [part for option in (f"confdir={home}", *options) for part in ("--set", option)]
    command = [*MITMDUMP, "-s", script(), "--listen-host", "127.0.0.1", "-p", str(port), *settings]
    return subprocess.Popen(
        command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ}
    )


@contextmanager
def running(home: Path, *options: str) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = mitmdump(home, port, *options)
    deadline = time.monotonic() + 180
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)
    yield port
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=180)
    # Python before 3.12.2 prints a traceback for each connection that mitmdump leaves open, with no line of ours in it.
    assert "wiretape/" not in "".join(line for line in said.splitlines() if line.lstrip().startswith("File ")), said


def test_a_stream_through_mitmdump_is_on_the_tape(tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    with Upstream() as upstream, running(tmp_path, f"wiretape_tape={tape}") as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", f"{upstream.url}/v1/chat/completions", b'{"model":"m","stream":true}')
        assert connection.getresponse().read() == b"".join(CHAT_EVENTS)
        connection.close()
    (exchange,) = read_tape(tape).exchanges
    assert exchange.ended is Ended.COMPLETE
    assert exchange.response is not None
    assert body_bytes(exchange.response.body) == b"".join(CHAT_EVENTS)


def test_an_open_stream_when_mitmdump_ends(tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    with Upstream() as upstream, ExitStack() as on_exit, running(tmp_path, f"wiretape_tape={tape}") as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        on_exit.callback(connection.close)  # after mitmdump has ended
        connection.request("GET", f"{upstream.url}/channel")
        response = connection.getresponse()
        on_exit.callback(response.close)
        assert response.read(10) == b"event: mes"
    (exchange,) = read_tape(tape).exchanges
    assert exchange.ended is Ended.RECORDER_STOPPED
    assert exchange.response is not None
    assert body_bytes(exchange.response.body) == b"event: message\ndata: 0\n\n"


def test_other_hosts_keep_their_own_certificates(tmp_path: Path) -> None:
    """A name that this machine resolves to itself and that is not spelled like loopback is a stranger."""
    stranger = socket.gethostname()
    try:
        loopback = socket.gethostbyname(stranger).startswith("127.")
    except OSError:
        loopback = False
    if not loopback or "localhost" in stranger:
        pytest.skip("this machine's name does not lead to loopback")
    authority, context = make_authority(tmp_path, stranger)
    tape = tmp_path / "a.tape"
    with Upstream(tls=context) as upstream, running(tmp_path, f"wiretape_tape={tape}") as port:
        trusting = ssl.create_default_context(cafile=str(authority))
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=60)
        connection.set_tunnel(stranger, upstream.port)
        connection.request("GET", "/x")
        assert connection.getresponse().status == 200
        connection.close()
    read = read_tape(tape)
    assert read.exchanges == ()
    assert read.header.bypassed == [stranger]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "name the tape to record"),
        (["wiretape_tape=there.tape"], "appends to it"),
        (["wiretape_tape=there.tape/a.tape"], "there.tape"),
    ],
)
def test_an_unwritable_tape_ends_mitmdump_with_one_line(options: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "there.tape").write_text("{}")
    process = mitmdump(tmp_path, 0, *options)
    try:
        output, _ = process.communicate(timeout=180)
    finally:
        process.kill()
    assert process.returncode == 1
    assert said in output
    assert "Traceback" not in output
    assert (tmp_path / "there.tape").read_text() == "{}"
