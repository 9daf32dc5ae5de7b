"""Intercepts TLS in a replay: mitmproxy behind the forward proxy, with the replay server as its only upstream.

It neither matches nor answers. Requests of any HTTP version are sent to the server over HTTP/1, with their whole URL,
and its responses are streamed back. No connection to another host is ever opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from mitmproxy import http, tls
from mitmproxy.proxy import server_hooks

from wiretape.adapters.mitm.addon import drop_unsupported_offers
from wiretape.adapters.mitm.mitm_thread import MitmThread, ProxySettings
from wiretape.model.http import bracketed

_DRAIN_S = 2.0
Address = tuple[str, int]
# Called with the host, the port and the reason if a tunnel fails without a request.
Refused = Callable[[str, int, str], None]


class ReplayAddon:
    """`server_port`: the replay server's."""

    def __init__(self, server_port: int, refused: Refused) -> None:
        self._server: Address = ("127.0.0.1", server_port)
        self._refused = refused
        self._clients: dict[Address, Address] = {}  # connections to the server -> clients

    def client_behind(self, address: Address) -> Address | None:
        """Return the client for which the connection to the server from `address` was opened."""
        return self._clients.get(address)

    # connections

    def server_connect(self, data: server_hooks.ServerConnectionHookData) -> None:
        """Every connection starts here. All but those to the replay server are refused."""
        address = data.server.address
        if address is None or tuple(address[:2]) != self._server:
            data.server.error = "wiretape replay opens no connection"
            if address is not None:
                self._refused(address[0], address[1], "its client did not send HTTP")

    def server_connected(self, data: server_hooks.ServerConnectionHookData) -> None:
        if data.server.sockname and data.client.peername:
            self._clients[_address(data.server.sockname)] = _address(data.client.peername)

    def server_disconnected(self, data: server_hooks.ServerConnectionHookData) -> None:
        if data.server.sockname:
            self._clients.pop(_address(data.server.sockname), None)

    def tls_failed_client(self, data: tls.TlsData) -> None:
        """Report a client that does not trust the certificate. A client may also just disconnect."""
        address, error = data.context.server.address, data.conn.error or ""
        if address is not None and "disconnected during the handshake" not in error:
            self._refused(address[0], address[1], f"its client did not accept wiretape's certificate ({error})")

    # requests

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        request = flow.request
        if flow.error or flow.response:
            return
        drop_unsupported_offers(request)
        host = bracketed(request.host)
        port = "" if request.port == {"http": 80, "https": 443}.get(request.scheme) else f":{request.port}"
        request.path = f"{request.scheme}://{host}{port}/{request.path.removeprefix('/')}"
        request.scheme = "http"
        request.host, request.port = self._server
        request.stream = True
        if request.is_http2 and "content-length" not in request.headers:
            request.headers["transfer-encoding"] = "chunked"  # an HTTP/1 body without a length needs it

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if flow.response is not None:
            flow.response.stream = True

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        assert flow.websocket is not None
        del flow.websocket.messages[:-1]  # else they would fill the memory

    def error(self, flow: http.HTTPFlow) -> None:
        """If the server closes the connection without a response, do the same, instead of mitmproxy's error page."""
        if flow.response is None and flow.killable:
            flow.kill()


class ReplayProxy(MitmThread):
    """mitmproxy with that addon. `confdir`: the directory of the authority."""

    def __init__(self, confdir: Path, server_port: int, refused: Refused, trouble: Callable[[str], None]) -> None:
        self._addon = ReplayAddon(server_port, refused)
        super().__init__(ProxySettings(confdir), [], [self._addon], trouble)

    def client_behind(self, address: Address) -> Address | None:
        return self._addon.client_behind(address)

    async def drained(self) -> None:
        """Wait for connections to end: the forward proxy has closed its side."""
        deadline = asyncio.get_running_loop().time() + _DRAIN_S
        while len(asyncio.all_tasks()) > 1 and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)

    def _addon_options(self) -> dict[str, object]:
        return {**super()._addon_options(), "upstream_cert": False}


def _address(address: tuple[object, ...]) -> Address:
    return str(address[0]), int(str(address[1]))
