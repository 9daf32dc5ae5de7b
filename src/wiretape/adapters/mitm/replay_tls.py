"""Opens TLS in a replay: mitmproxy behind the gate, with the replay server as the only place where anything leads.

Nothing is matched or answered here. Requests are sent on to the server under path routes, over HTTP/1 whatever their
client speaks; what it answers flows back as it comes. No connection to any other place is ever opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from mitmproxy import http, tls
from mitmproxy.proxy import server_hooks

from wiretape.adapters.mitm.addon import drop_what_cannot_be_kept
from wiretape.adapters.mitm.mitm_thread import MitmThread, ProxySettings
from wiretape.model.http import bracketed

_DRAIN_S = 2.0
Address = tuple[str, int]
# Told of a connection that was opened and came to nothing: where it was meant to lead, and why.
Refused = Callable[[str, int, str], None]


class ReplayAddon:
    """`server_port`: the replay server's."""

    def __init__(self, server_port: int, refused: Refused) -> None:
        self._server: Address = ("127.0.0.1", server_port)
        self._refused = refused
        self._clients: dict[Address, Address] = {}  # our connections to the server -> whom they serve

    def client_behind(self, address: Address) -> Address | None:
        """The address of the client for whom the connection to the server from `address` was opened."""
        return self._clients.get(address)

    # connections

    def server_connect(self, data: server_hooks.ServerConnectionHookData) -> None:
        """The one place from which connections start. Only the replay server is reached, whatever asks for another."""
        address = data.server.address
        if address is None or tuple(address[:2]) != self._server:
            data.server.error = "wiretape replay opens no connection"
            if address is not None:
                self._refused(address[0], address[1], "no HTTP was spoken inside it")

    def server_connected(self, data: server_hooks.ServerConnectionHookData) -> None:
        if data.server.sockname and data.client.peername:
            self._clients[_address(data.server.sockname)] = _address(data.client.peername)

    def server_disconnected(self, data: server_hooks.ServerConnectionHookData) -> None:
        if data.server.sockname:
            self._clients.pop(_address(data.server.sockname), None)

    def tls_failed_client(self, data: tls.TlsData) -> None:
        """A client that only went away has asked for nothing."""
        address, error = data.context.server.address, data.conn.error or ""
        if address is not None and "disconnected during the handshake" not in error:
            self._refused(address[0], address[1], f"its client did not accept wiretape's certificate ({error})")

    # requests

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        request = flow.request
        if flow.error or flow.response:
            return
        drop_what_cannot_be_kept(request)
        host = bracketed(request.host)
        port = "" if request.port == {"http": 80, "https": 443}.get(request.scheme) else f":{request.port}"
        request.path = f"{request.scheme}://{host}{port}/{request.path.removeprefix('/')}"
        request.scheme = "http"
        request.host, request.port = self._server
        request.stream = True
        if request.is_http2 and "content-length" not in request.headers:
            request.headers["transfer-encoding"] = "chunked"  # the server is spoken to in HTTP/1, where a body needs it

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if flow.response is not None:
            flow.response.stream = True

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        assert flow.websocket is not None
        del flow.websocket.messages[:-1]  # they would pile up for as long as the connection lasts

    def error(self, flow: http.HTTPFlow) -> None:
        """Where the tape has no answer the connection ends, as at the server: not with a page of mitmproxy's."""
        if flow.response is None and flow.killable:
            flow.kill()


class ReplayProxy(MitmThread):
    """mitmproxy with that addon. `confdir` holds the authority."""

    def __init__(self, confdir: Path, server_port: int, refused: Refused, trouble: Callable[[str], None]) -> None:
        self._addon = ReplayAddon(server_port, refused)
        super().__init__(ProxySettings(confdir), [], [self._addon], trouble)

    def client_behind(self, address: Address) -> Address | None:
        return self._addon.client_behind(address)

    async def drained(self) -> None:
        """The gate has closed its connections: what they led to ends by itself."""
        deadline = asyncio.get_running_loop().time() + _DRAIN_S
        while len(asyncio.all_tasks()) > 1 and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)

    def _addon_options(self) -> dict[str, object]:
        return {**super()._addon_options(), "upstream_cert": False}


def _address(address: tuple[object, ...]) -> Address:
    return str(address[0]), int(str(address[1]))
