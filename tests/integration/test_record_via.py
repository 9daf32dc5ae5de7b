"""The recording proxy behind a corporate proxy, with NO_PROXY."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
pytest.importorskip("mitmproxy.addons", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.certificates import make_authority
from tests.support.corporate import CorporateProxy
from tests.support.proxying import Spy, recording
from tests.support.upstream import CHAT_ANSWER, Upstream

from wiretape.model.http import Ended

pytestmark = pytest.mark.proxy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    return make_authority(tmp_path_factory.mktemp("authority"), "models.invalid")


@pytest.fixture
def corporate() -> Iterator[CorporateProxy]:
    with CorporateProxy() as running:
        yield running


def ask(connection: http.client.HTTPConnection, target: str) -> object:
    connection.request("POST", target, b"{}")
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def test_plain_requests_are_forwarded_in_absolute_form(corporate: CorporateProxy, state: Path) -> None:
    spy = Spy()
    with Upstream() as upstream:
        environ = {"HTTP_PROXY": f"http://me:secret@127.0.0.1:{corporate.port}"}
        url = f"http://models.invalid:{upstream.port}/v1/chat/completions"
        with recording(spy, state, environ, hosts=["models.invalid"]) as (running, troubles):
            by_proxy = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
            assert ask(by_proxy, url) == CHAT_ANSWER
            by_route = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
            assert ask(by_route, f"/http:models.invalid:{upstream.port}/v1/chat/completions") == CHAT_ANSWER
            spy.wait_for_end(2)
        assert [seen.path for seen in upstream.seen] == ["/v1/chat/completions"] * 2
    login = "Basic " + base64.b64encode(b"me:secret").decode()
    assert corporate.asked == [("POST", url, login)] * 2
    assert [begin[1] for begin in spy.named("begin")] == [url, url]
    assert troubles == []


def test_tls_is_tunnelled_for_both_doors(
    corporate: CorporateProxy, authority: tuple[Path, ssl.SSLContext], state: Path
) -> None:
    spy = Spy()
    with Upstream(tls=authority[1]) as upstream:
        environ = {"HTTPS_PROXY": f"http://127.0.0.1:{corporate.port}", "SSL_CERT_FILE": str(authority[0])}
        with recording(spy, state, environ, hosts=["models.invalid"]) as (running, troubles):
            context = ssl.create_default_context(cafile=running.variables()["SSL_CERT_FILE"])
            tunnel = http.client.HTTPSConnection("127.0.0.1", running.port, context=context, timeout=10)
            tunnel.set_tunnel("models.invalid", upstream.port)
            assert ask(tunnel, "/v1/chat/completions") == CHAT_ANSWER
            route = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
            assert ask(route, f"/models.invalid:{upstream.port}/v1/chat/completions") == CHAT_ANSWER
            assert spy.wait_for_end(2) is Ended.COMPLETE
        target = f"models.invalid:{upstream.port}"
    assert [asked[:2] for asked in corporate.asked] == [("CONNECT", target)] * 2
    assert troubles == []


def test_a_host_that_is_not_recorded_is_tunnelled_untouched(
    corporate: CorporateProxy, authority: tuple[Path, ssl.SSLContext], state: Path
) -> None:
    spy = Spy()
    with Upstream(tls=authority[1]) as upstream:
        with recording(spy, state, {"HTTPS_PROXY": f"http://127.0.0.1:{corporate.port}"}) as (running, _):
            context = ssl.create_default_context(cafile=str(authority[0]))
            tunnel = http.client.HTTPSConnection("127.0.0.1", running.port, context=context, timeout=10)
            tunnel.set_tunnel("models.invalid", upstream.port)
            assert ask(tunnel, "/v1/chat/completions") == CHAT_ANSWER
        assert corporate.asked[0][:2] == ("CONNECT", f"models.invalid:{upstream.port}")
    assert spy.calls == [("bypassed", "models.invalid")]


def test_loopback_and_no_proxy_bypass_it(
    corporate: CorporateProxy, authority: tuple[Path, ssl.SSLContext], state: Path
) -> None:
    spy = Spy()
    environ = {"HTTPS_PROXY": f"http://127.0.0.1:{corporate.port}", "SSL_CERT_FILE": str(authority[0])}
    with Upstream() as plain, Upstream(tls=authority[1]) as tls, recording(spy, state, environ) as (running, _):
        by_proxy = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
        assert ask(by_proxy, f"{plain.url}/v1/chat/completions") == CHAT_ANSWER
        by_route = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
        assert ask(by_route, f"/127.0.0.1:{plain.port}/v1/chat/completions") == CHAT_ANSWER
        context = ssl.create_default_context(cafile=running.variables()["SSL_CERT_FILE"])
        tunnel = http.client.HTTPSConnection("127.0.0.1", running.port, context=context, timeout=10)
        tunnel.set_tunnel("localhost", tls.port)
        assert ask(tunnel, "/v1/chat/completions") == CHAT_ANSWER
        spy.wait_for_end(3)
        assert plain.seen[0].path == "/v1/chat/completions"
    assert corporate.asked == []
