"""The mitmproxy addon: translates its hooks into calls of the recorder, and sends requests on base-URL routes upstream.

It contains no logic of recording. A failure must never harm the traffic: every call of the recorder is guarded, and a
tee always returns its data.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol
from urllib.parse import urlsplit

from mitmproxy import connection, http, tls

from wiretape.adapters.mitm._compat import chunks
from wiretape.adapters.mitm._compat.chunks import CHUNK, LARGE
from wiretape.adapters.mitm.layer_choice import LayerChoice
from wiretape.adapters.mitm.tool_port import ToolReports
from wiretape.adapters.routing.admission import Admission
from wiretape.adapters.routing.base_urls import default_route_warning
from wiretape.adapters.routing.hosts import Hosts, is_loopback
from wiretape.adapters.routing.route_links import Route
from wiretape.adapters.routing.routes import route_url
from wiretape.adapters.routing.upstream_proxy import UpstreamProxy
from wiretape.matching.values import LiveRequest
from wiretape.model.header_links import LINK_HEADERS, without_query
from wiretape.model.http import Ended, Headers, Sender, bracketed

# A request up to this size is buffered: if its upstream cannot be reached, its body is still on the tape. A larger one,
# or one of unknown size, is streamed.
_MAX_BUFFERED_REQUEST = 4 * 1024 * 1024
_CLIENT_CANCELS = ("CANCEL", "NO_ERROR")  # how clients reset an HTTP/2 stream; upstreams give other reasons
_UNAUTHORIZED = (401, 403)
_RECORDED = "wiretape"  # flow.metadata: the exchange's number
_AHEAD = "wiretape.ahead"  # flow.metadata: the next chunk is recorded already
_SLICE = 64 * 1024  # bytes of a body that the worker records at a time: large bodies take turns
_ROUTE = "wiretape.route"  # flow.metadata: the base-URL route of a request


class RecorderInterface(Protocol):
    """The methods of a recorder that the addon calls."""

    def begin(self, method: str, url: str, http: str | None, headers: Iterable[tuple[str, str]]) -> int: ...
    def request_data(self, x: int, data: bytes) -> None: ...
    def request_end(self, x: int) -> None: ...
    def response(self, x: int, status: int, headers: Iterable[tuple[str, str]]) -> None: ...
    def response_data(self, x: int, data: bytes) -> None: ...
    def end(self, x: int, ended: Ended, trailers: Iterable[tuple[str, str]] | None = None) -> None: ...
    def message(self, x: int, sender: Sender, data: str | bytes) -> None: ...
    def close_ws(self, x: int, code: int, reason: str, sender: Sender | None) -> None: ...
    def bypassed(self, host: str) -> None: ...


class RecordingAddon:
    """Records the traffic of one proxy.

    `own_port`: the proxy's, set when it listens; None: base-URL routes are off (in a user's own mitmproxy). `via`:
    the proxy through which upstreams are reached. `default_routes`: hosts that wiretape's default base URLs name, each
    with its variable, which the user had not set. `routed`: hosts and ports that base URLs name.
    """

    def __init__(
        self,
        recorder: RecorderInterface,
        hosts: Hosts,
        on_trouble: Callable[[str], None],
        *,
        upstream: str | None = None,
        via: UpstreamProxy | None = None,
        default_routes: Mapping[str, str] | None = None,
        routed: frozenset[tuple[str, int]] = frozenset(),
        admission: Admission | None = None,
    ) -> None:
        self.own_port: int | None = None
        self.layer_choice = LayerChoice(hosts, self._bypassed, via)
        self.open: set[int] = set()  # exchanges that have not ended
        self.unrouted: set[str] = set()  # requests to our own port whose path names no host
        self.distrusted: set[str] = set()  # hosts for which a client refused our certificate
        self.through_tls: set[str] = set()  # recorded hosts whose TLS was intercepted
        self._tls_without_request: dict[str, str] = {}  # by connection, with its host
        self.default_routes = dict(default_routes or {})
        self._routed = routed
        self._admission = admission or Admission()
        self._recorder = recorder
        self.trouble = on_trouble
        self.tools = ToolReports(recorder, self._safely)
        self._upstream = upstream
        self._via = via
        self._stopped = False
        self._worker = ThreadPoolExecutor(1, "wiretape-bodies")  # records large chunks
        chunks.install()

    def stop(self) -> None:
        """Stop recording: the recorder ends open exchanges. Traffic continues."""
        self._stopped = True
        self._worker.shutdown()  # waiting calls return immediately; cancelling them would end their traffic

    # connections

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Do the upstream's TLS handshake first, so that the client is offered the upstream's protocols.

        The connection is opened only now: with mitmproxy's eager strategy, an unreachable host would be refused before
        there is a request to record.
        """
        data.establish_server_tls_first = bool(data.context.server.tls)

    def tls_failed_client(self, data: tls.TlsData) -> None:
        server = data.context.server
        host = data.context.client.sni or (server.address[0] if server.address else None)
        if host and host not in self.distrusted:
            self.distrusted.add(host)
            self.trouble(f"the client did not accept wiretape's certificate for {host}: {data.conn.error}")

    def tls_established_client(self, data: tls.TlsData) -> None:
        server = data.context.server
        self._tls_without_request[data.conn.id] = data.conn.sni or (server.address[0] if server.address else "")

    def client_disconnected(self, client: connection.Client) -> None:
        """Report clients (GnuTLS) that check the certificate after the handshake and disconnect without an alert."""
        host = self._tls_without_request.pop(client.id, None)
        if host and host not in self.distrusted | self.through_tls:
            self.distrusted.add(host)
            self.trouble(
                f"a client opened TLS to {host} and disconnected without a request: "
                "most likely it did not accept wiretape's certificate"
            )

    # requests

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if not self._is_recorded(flow):
            return
        x = self._begin(flow)
        if x is not None and not _is_buffered(flow.request):
            flow.request.stream = self._tee(self._recorder.request_data, x, flow)

    def _is_recorded(self, flow: http.HTTPFlow) -> bool:
        """Return whether a request is recorded; if not, it is streamed to its upstream."""
        self._tls_without_request.pop(flow.client_conn.id, None)
        if flow.error or flow.response or not self._route(flow):
            return False
        request = flow.request
        if self._via is not None:
            self._via.direct(flow)
        if not (flow.metadata.get(_ROUTE) or self.layer_choice.is_recorded(request.host, request.port)):
            request.stream = True
            return False
        drop_unsupported_offers(request)
        return True

    def _begin(self, flow: http.HTTPFlow) -> int | None:
        request = flow.request
        x: int | None = self._safely(
            self._recorder.begin, request.method, request.url, _version(request), pairs_of(request.headers)
        )
        if x is None:
            request.stream = True
            return None
        self.open.add(x)
        flow.metadata[_RECORDED] = x
        if request.scheme == "https" and not flow.metadata.get(_ROUTE):
            self.through_tls.add(request.host)
        return x

    @staticmethod
    def number_of(flow: http.HTTPFlow) -> int | None:
        """Return the number of the exchange that records a flow; None for other flows."""
        x: int | None = flow.metadata.get(_RECORDED)
        return x

    def _route(self, flow: http.HTTPFlow) -> bool:
        """Send a request to our own port to the host in its path; False: it names none, and was answered here."""
        request = flow.request
        if self.own_port is None:
            return True
        authority = request.host_header or f"127.0.0.1:{self.own_port}"
        if self.layer_choice.is_addressed_as_server(flow.client_conn):
            origins = [("origin", value) for value in request.headers.get_all("origin")]
            refusal = self._admission.refusal(Headers([("host", authority), *origins]))
            if refusal is not None:
                flow.response = _refusal(403, f"wiretape refuses this request: {refusal}")
                return False
        elif not (request.port == self.own_port and is_loopback(request.host)):
            return True  # a proxied request for another host
        url = route_url(request.path, self._upstream)
        if url is None:
            self.unrouted.add(f"{request.method} {request.path.partition('?')[0]}")
            flow.response = _refusal(404, _no_route(request.path, self.own_port))
            return False
        scheme = "https" if flow.client_conn.tls_established else "http"
        flow.metadata[_ROUTE] = Route(f"{scheme}://{authority}", request.path, url)
        request.url = url
        return True

    async def request(self, flow: http.HTTPFlow) -> None:
        x = flow.metadata.get(_RECORDED)
        if x is not None:
            if not flow.request.stream and flow.request.raw_content:
                await self._record(self._recorder.request_data, x, flow.request.raw_content)
            self._safely(self._recorder.request_end, x)

    async def large_chunk(self, flow: http.HTTPFlow) -> None:
        """Record a large chunk of a streamed body on the worker, before the tee gets it."""
        data, from_client = flow.metadata.pop(CHUNK)
        x = flow.metadata.get(_RECORDED)
        if x is not None:
            await self._record(self._recorder.request_data if from_client else self._recorder.response_data, x, data)
            flow.metadata[_AHEAD] = True

    # responses

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        x = flow.metadata.get(_RECORDED)
        response = flow.response
        if response is None:
            return
        if x is None:
            response.stream = True
            self._keep_on_route(flow)
            return
        self._safely(self._recorder.response, x, response.status_code, pairs_of(response.headers))
        if response.status_code in _UNAUTHORIZED:
            self._doubt(flow, f"{flow.request.host} answered {response.status_code}")
        response.stream = self._tee(self._recorder.response_data, x, flow)
        self._keep_on_route(flow)

    def _keep_on_route(self, flow: http.HTTPFlow) -> None:
        """Rewrite the links in a response so that the client stays on its base-URL route. The tape has the original."""
        route: Route | None = flow.metadata.get(_ROUTE)
        if route is None or flow.response is None:
            return
        headers = flow.response.headers
        if LINK_HEADERS.isdisjoint(name.lower() for name in headers):
            return
        before = pairs_of(headers)
        kept = route.keep(before, lambda host, port: (host, port) in self._routed)
        changed = zip(headers.fields, before, kept.headers, strict=True)
        headers.fields = tuple(raw if was == now else (raw[0], now[1].encode()) for raw, was, now in changed)
        for target in kept.foreign:
            self.trouble(_leaves_route(route.url, target))

    def response(self, flow: http.HTTPFlow) -> None:
        if flow.websocket is None and flow.response is not None:
            trailers = flow.response.trailers
            self._end(flow, Ended.COMPLETE, pairs_of(trailers) if trailers else None)

    def error(self, flow: http.HTTPFlow) -> None:
        ended = _ended(flow)
        if flow.metadata.get(_RECORDED) is not None and ended is Ended.UPSTREAM_UNREACHABLE and not self._stopped:
            reason = flow.error.msg if flow.error else "unknown"
            self.trouble(f"{bracketed(flow.request.host)}:{flow.request.port} could not be reached: {reason}")
            self._doubt(flow)
        self._end(flow, ended)
        if ended is not Ended.CLIENT_CLOSED and flow.response is None and flow.killable:
            # Let the client see a failed connection, as without a proxy, instead of an error page.
            flow.kill()

    async def websocket_message(self, flow: http.HTTPFlow) -> None:
        assert flow.websocket is not None
        message = flow.websocket.messages[-1]
        del flow.websocket.messages[:-1]  # else they would fill the memory
        x = flow.metadata.get(_RECORDED)
        if x is not None:
            data = message.text if message.is_text else message.content
            values = x, "client" if message.from_client else "server", data
            if len(data) > LARGE:
                await self._in_worker(self._recorder.message, *values)
            else:
                self._safely(self._recorder.message, *values)

    def websocket_end(self, flow: http.HTTPFlow) -> None:
        x = flow.metadata.get(_RECORDED)
        end = flow.websocket
        if x is None or end is None:
            return
        sender: Sender = "client" if end.closed_by_client else "server"
        if end.close_code in (None, 1006):  # no close frame: the connection just ended
            self._end(flow, Ended.CLIENT_CLOSED if end.closed_by_client else Ended.UPSTREAM_CLOSED)
            return
        self._safely(self._recorder.close_ws, x, end.close_code, end.close_reason or "", sender)
        self._end(flow, Ended.COMPLETE)

    def _doubt(self, flow: http.HTTPFlow, what: str | None = None) -> None:
        """Report a failure; if the route is a default, name its variable: the program may need another host."""
        variable = self.default_routes.get(flow.request.host) if flow.metadata.get(_ROUTE) else None
        if variable is not None:
            said = default_route_warning(flow.request.host, variable)
            self.trouble(f"{what}: {said}" if what else said)

    # calls of the recorder

    def _end(self, flow: http.HTTPFlow, ended: Ended, trailers: list[tuple[str, str]] | None = None) -> None:
        x = flow.metadata.get(_RECORDED)
        if x in self.open and not self._stopped:
            self.open.discard(x)
            self._safely(self._recorder.end, x, ended, trailers)

    def _bypassed(self, host: str) -> None:
        self._safely(self._recorder.bypassed, host)

    def _tee(self, record: Callable[[int, bytes], None], x: int, flow: http.HTTPFlow) -> Callable[[bytes], bytes]:
        def tee(data: bytes) -> bytes:
            if data and not flow.metadata.pop(_AHEAD, False):
                self._safely(record, x, data)
            return data  # always: the other side gets only what a tee returns

        return tee

    async def _record(self, record: Callable[[int, bytes], None], x: int, data: bytes) -> None:
        """Record a part of a body before it is passed on; a large one on the worker, while other calls are served."""
        if len(data) <= LARGE:
            self._safely(record, x, data)
            return
        for start in range(0, len(data), _SLICE):
            await self._in_worker(record, x, data[start : start + _SLICE])

    def _in_worker(self, record: Callable[..., None], *values: Any) -> Awaitable[None]:
        try:
            return asyncio.get_running_loop().run_in_executor(self._worker, self._safely, record, *values)
        except RuntimeError:  # the recording has stopped
            return asyncio.sleep(0)

    def _safely(self, record: Callable[..., Any], *values: Any) -> Any:
        """Call the recorder. If it fails, the traffic continues and the user is told."""
        if self._stopped:
            return None
        try:
            return record(*values)
        except Exception as error:
            self.trouble(f"recording failed: {type(error).__name__}: {error}")
            return None


def _ended(flow: http.HTTPFlow) -> Ended:
    """Return which side ended a broken flow. For a reset HTTP/2 stream, only the reason in the message shows it."""
    message = flow.error.msg if flow.error else ""
    server = flow.server_conn
    if message.lower().startswith("client disconnected") or message == "connection cancelled":
        return Ended.CLIENT_CLOSED  # while the upstream was being connected
    if message.startswith("stream reset by client"):
        return Ended.CLIENT_CLOSED if any(reason in message for reason in _CLIENT_CANCELS) else Ended.UPSTREAM_CLOSED
    if flow.response is None and (server.error or server.timestamp_tcp_setup is None):
        return Ended.UPSTREAM_UNREACHABLE
    return Ended.UPSTREAM_CLOSED


def live_request(request: http.Request) -> LiveRequest:
    """Return a buffered request as matching and the debugger take it."""
    headers = [(name, value) for name, value in pairs_of(request.headers) if not name.startswith(":")]
    return LiveRequest(request.method, request.url, Headers(headers), request.raw_content or b"")


def _is_buffered(request: http.Request) -> bool:
    if "transfer-encoding" in request.headers:
        return False
    length = request.headers.get("content-length")
    if length is None:
        # An HTTP/1 request has no body then; one of HTTP/2 may have a body of any size.
        return not request.is_http2
    return length.isdigit() and int(length) <= _MAX_BUFFERED_REQUEST


def drop_unsupported_offers(request: http.Request) -> None:
    """Remove headers for a proxy, and two offers that mitmproxy does not support.

    These are upgrades to h2c, and compressed WebSockets: a ping between fragments would end the connection.
    """
    request.headers.pop("proxy-connection", None)
    request.headers.pop("sec-websocket-extensions", None)
    if request.headers.get("upgrade", "").lower() == "h2c":
        for name in ("upgrade", "http2-settings", "connection"):
            request.headers.pop(name, None)


def _version(message: http.Message) -> str:
    return "2" if message.is_http2 else message.http_version.removeprefix("HTTP/")


def pairs_of(headers: http.Headers) -> list[tuple[str, str]]:
    return [(_text(name), _text(value)) for name, value in headers.fields]


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _refusal(status: int, message: str) -> http.Response:
    body = json.dumps({"error": {"type": "wiretape", "message": message}})
    return http.Response.make(status, body, {"content-type": "application/json", "x-should-retry": "false"})


def _leaves_route(url: str, target: str) -> str:
    return (
        f"{urlsplit(url).netloc} redirects its client to {without_query(target)}, which is not changed: "
        "requests to it are recorded only if they use the proxy variables"
    )


def _no_route(path: str, port: int) -> str:
    return (
        f"wiretape: {path.partition('?')[0]} names no host. Use http://127.0.0.1:{port}/HOST/PATH as the base URL, "
        "or name the host for such requests with --upstream URL"
    )
