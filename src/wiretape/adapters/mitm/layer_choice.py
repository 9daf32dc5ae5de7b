"""Chooses the layer of a connection before mitmproxy does: tunnels to hosts that are not recorded are bypassed.

Its hook must run before mitmproxy's own `next_layer`, so it is a separate addon.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mitmproxy.proxy import layer, layers
from mitmproxy.proxy.layers.http import HTTPMode

from wiretape.adapters.routing.hosts import Hosts
from wiretape.adapters.routing.upstream_proxy import UpstreamProxy

_ENOUGH = 16  # bytes with the method and the beginning of its target


class LayerChoice:
    """`on_bypass` is called once for each host that is bypassed."""

    def __init__(self, hosts: Hosts, on_bypass: Callable[[str], None], via: UpstreamProxy | None = None) -> None:
        self._hosts = hosts
        self._on_bypass = on_bypass
        self._via = via
        self._bypassed: set[str] = set()
        self._origin_form: set[str] = set()  # client connections whose requests are not for a proxy

    def is_recorded(self, host: str, port: int) -> bool:
        if self._hosts.recorded(host, port):
            return True
        if host not in self._bypassed:
            self._bypassed.add(host)
            self._on_bypass(host)
        return False

    def is_addressed_as_server(self, client: Any) -> bool:
        """Return whether a client sends requests as to a server, not as to a proxy."""
        return client.id in self._origin_form

    def next_layer(self, nextlayer: layer.NextLayer) -> None:
        context = nextlayer.context
        if len(context.layers) == 1:
            self._first_bytes(nextlayer)
        elif self._is_bypassed(context):
            nextlayer.layer = layers.TCPLayer(context, ignore=True)

    def _is_bypassed(self, context: Any) -> bool:
        """Return whether this is the inside of a CONNECT to a host that is not recorded."""
        address = context.server.address
        if not address or isinstance(context.layers[-1], layers.ClientTLSLayer):
            return False
        return not self.is_recorded(*address[:2])

    def client_disconnected(self, client: Any) -> None:
        self._origin_form.discard(client.id)

    def _first_bytes(self, nextlayer: layer.NextLayer) -> None:
        data = nextlayer.data_client()
        method, space, target = data[:_ENOUGH].partition(b" ")
        if space and target.startswith((b"/", b"*")):
            self._origin_form.add(nextlayer.context.client.id)
        elif method == b"CONNECT" and self._via is not None and self._via.goes_around(data):
            nextlayer.layer = layers.HttpLayer(nextlayer.context, HTTPMode.regular)
