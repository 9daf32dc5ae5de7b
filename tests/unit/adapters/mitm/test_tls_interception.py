"""Opening TLS: where it cannot be done a person is told what would help, and what is not asked for costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.replaying import chat, exchange, session, user

from wiretape.adapters.mitm import tls_interception
from wiretape.adapters.mitm.tls_interception import authority, why_not
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.errors import UsageError


def test_an_older_python_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tls_interception, "_python", lambda: (3, 11))
    with pytest.raises(UsageError, match=r"opening TLS needs Python 3.12 or later, and this is 3.11") as error:
        authority({"XDG_STATE_HOME": str(tmp_path)})
    assert "uv tool install --python 3.13 '.[proxy]'" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_so_is_a_missing_mitmproxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_interception, "_python", lambda: (3, 12))
    monkeypatch.setattr(tls_interception, "find_spec", lambda name: None)
    assert why_not() == (
        "opening TLS needs mitmproxy, which is not installed\n  in wiretape's own folder: pip install '.[proxy]'"
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it can be had here")
def test_the_command_that_asks_for_it_by_name_fails_where_it_cannot_be_had(tmp_path: Path) -> None:
    tape = Path(__file__).parents[4] / "captures" / "introduction.tape"
    command = [sys.executable, "-m", "wiretape", "replay", "--proxy", str(tape), "--", sys.executable, "-c", "print(1)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("wiretape: opening TLS needs Python 3.12 or later, and this is 3.11")


@pytest.mark.proxy
@pytest.mark.skipif(why_not() is not None, reason="opening TLS needs mitmproxy (Python 3.12 or later)")
def test_the_authority_is_made_once_and_trusted_beside_what_was_there(tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    own.write_text("# my own\n")
    environ = {"XDG_STATE_HOME": str(tmp_path), "SSL_CERT_FILE": str(own)}
    first = authority(environ)
    again = authority(environ, everything=True)
    assert (first.certificate, again.certificate.read_bytes()) == (again.certificate, first.certificate.read_bytes())
    with ReplayServer(session(exchange(1, chat(user("hi")), "one")), ReplayServerOptions(authority=first)) as running:
        trusted = Path(running.variables(environ)["SSL_CERT_FILE"]).read_text()
    assert trusted.startswith("# my own")
    assert first.certificate.read_text().strip() in trusted


def test_mitmproxy_is_not_loaded_where_no_tunnel_asks_for_it(tmp_path: Path) -> None:
    """It takes a second: a replay that needs none must not wait for it."""
    code = """
import os, sys
from pathlib import Path
from wiretape.adapters.mitm.tls_interception import Authority
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.matching.session import ReplaySession
import urllib.request
made = Authority(Path(sys.argv[1]), Path(sys.argv[1], "ca.pem"), everything=True)
with ReplayServer(ReplaySession([]), ReplayServerOptions(authority=made)) as running:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{running.port}/x")
    except urllib.error.HTTPError as error:
        assert error.code == 404
assert not [name for name in sys.modules if name.partition(".")[0] == "mitmproxy"]
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)
