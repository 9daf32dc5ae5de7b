"""The recording proxy and TLS: intercepted for recorded hosts, tunnelled for others, verified towards upstreams."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
pytest.importorskip("mitmproxy.addons", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.certificates import make_authority
from tests.support.proxying import Spy, recording
from tests.support.upstream import CHAT_ANSWER, CHAT_EVENTS, Upstream

from wiretape.adapters.routing import hosts
from wiretape.model.http import Ended

pytestmark = pytest.mark.proxy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def upstream(authority: tuple[Path, ssl.SSLContext]) -> Iterator[Upstream]:
    with Upstream(tls=authority[1]) as running:
        yield running


def tunnel(port: int, upstream: Upstream, trusted: str | Path) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(trusted))
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
    connection.set_tunnel("localhost", upstream.port)
    return connection


def test_tls_to_a_recorded_host_is_opened(
    upstream: Upstream, authority: tuple[Path, ssl.SSLContext], state: Path
) -> None:
    spy = Spy()
    with recording(spy, state, {"SSL_CERT_FILE": str(authority[0])}) as (running, troubles):
        connection = tunnel(running.port, upstream, running.variables()["SSL_CERT_FILE"])
        connection.request("POST", "/v1/chat/completions", b'{"stream":true}')
        response = connection.getresponse()
        assert response.read() == b"".join(CHAT_EVENTS)
        connection.close()
        assert spy.wait_for_end() is Ended.COMPLETE
    assert spy.named("begin")[0][1] == f"https://localhost:{upstream.port}/v1/chat/completions"
    assert spy.data("response_data") == b"".join(CHAT_EVENTS)
    assert troubles == []


def test_a_route_points_to_a_tls_upstream(
    upstream: Upstream, authority: tuple[Path, ssl.SSLContext], state: Path
) -> None:
    spy = Spy()
    with recording(spy, state, {"SSL_CERT_FILE": str(authority[0])}) as (running, _):
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
        connection.request("POST", f"/https:localhost:{upstream.port}/v1/chat/completions", b"{}")
        assert json.loads(connection.getresponse().read()) == CHAT_ANSWER
        connection.close()
    assert spy.named("begin")[0][1] == f"https://localhost:{upstream.port}/v1/chat/completions"


def test_an_upstream_with_a_bad_certificate_is_rejected(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, troubles):
        connection = tunnel(running.port, upstream, running.variables()["SSL_CERT_FILE"])
        connection.request("POST", "/v1/chat/completions", b'{"secret": 1}')
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            connection.getresponse()
        connection.close()
        assert spy.wait_for_end() is Ended.UPSTREAM_UNREACHABLE
    assert "ertificate" in troubles[0]
    assert upstream.seen == []


def test_a_client_that_refuses_our_certificate_is_named(
    upstream: Upstream, authority: tuple[Path, ssl.SSLContext], state: Path
) -> None:
    spy = Spy()
    with recording(spy, state, {"SSL_CERT_FILE": str(authority[0])}) as (running, troubles):
        connection = tunnel(running.port, upstream, authority[0])
        with pytest.raises(ssl.SSLError):
            connection.request("GET", "/")
        connection.close()
    assert spy.named("begin") == []
    assert "did not accept wiretape's certificate for localhost" in troubles[0]


def test_a_client_that_rejects_the_certificate_after_the_handshake_is_reported(
    upstream: Upstream, authority: tuple[Path, ssl.SSLContext], state: Path
) -> None:
    """As GnuTLS has its programs do it: no alert tells the other side."""
    spy = Spy()
    with recording(spy, state, {"SSL_CERT_FILE": str(authority[0])}) as (running, troubles):
        connection = tunnel(running.port, upstream, running.variables()["SSL_CERT_FILE"])
        connection.connect()
        connection.close()
    assert spy.named("begin") == []
    said = "a client opened TLS to localhost and disconnected without a request"
    assert troubles == [f"{said}: most likely it did not accept wiretape's certificate"]


def test_a_spare_connection_to_a_recorded_host_is_not_an_error(
    upstream: Upstream, authority: tuple[Path, ssl.SSLContext], state: Path
) -> None:
    spy = Spy()
    with recording(spy, state, {"SSL_CERT_FILE": str(authority[0])}) as (running, troubles):
        asked, spare = (tunnel(running.port, upstream, running.variables()["SSL_CERT_FILE"]) for _ in range(2))
        asked.request("POST", "/v1/chat/completions", b"{}")
        assert json.loads(asked.getresponse().read()) == CHAT_ANSWER
        spare.connect()
        for connection in (spare, asked):
            connection.close()
    assert troubles == []


def test_tls_to_any_other_host_is_not_touched(
    upstream: Upstream,
    authority: tuple[Path, ssl.SSLContext],
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client verifies the upstream's own certificate, so no proxy intercepted the connection."""
    monkeypatch.setattr(hosts, "is_loopback", lambda host: host == "127.0.0.1")
    spy = Spy()
    with recording(spy, state) as (running, troubles):
        for _ in range(2):
            connection = tunnel(running.port, upstream, authority[0])
            connection.request("POST", "/v1/chat/completions", b"{}")
            assert json.loads(connection.getresponse().read()) == CHAT_ANSWER
            connection.close()
    assert spy.calls == [("bypassed", "localhost")]
    assert troubles == []


def test_a_glob_has_such_a_host_recorded(
    upstream: Upstream,
    authority: tuple[Path, ssl.SSLContext],
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hosts, "is_loopback", lambda host: host == "127.0.0.1")
    spy = Spy()
    with recording(spy, state, {"SSL_CERT_FILE": str(authority[0])}, hosts=["local*"]) as (running, _):
        connection = tunnel(running.port, upstream, running.variables()["SSL_CERT_FILE"])
        connection.request("POST", "/v1/chat/completions", b"{}")
        assert json.loads(connection.getresponse().read()) == CHAT_ANSWER
        connection.close()
        assert spy.wait_for_end() is Ended.COMPLETE
    assert spy.named("bypassed") == []
