"""The mitmproxy addon: translates its hooks into calls of the recorder, and sends path routes where they lead.

No logic of recording lives here. Nothing that fails here may harm the traffic: every call of the recorder is wrapped,
and the data that passes through a tee is returned whatever happens.
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
from wiretape.adapters.routing.hosts import Hosts, is_loopback
from wiretape.adapters.routing.route_links import Route
from wiretape.adapters.routing.routes import route_url
from wiretape.adapters.routing.unset_routes import doubt
from wiretape.adapters.routing.upstream_proxy import UpstreamProxy
from wiretape.model.header_links import LINK_HEADERS, without_query
from wiretape.model.http import Ended, Headers, Sender, bracketed

# A request up to this size is held until it is whole: if its upstream cannot be reached, its body is still on the
# tape. A larger one, or one of unknown size, flows through as it comes.
HELD_REQUEST_BYTES = 4 * 1024 * 1024
_CLIENT_CANCELS = ("CANCEL", "NO_ERROR")  # how clients reset an HTTP/2 stream; upstreams give other reasons
_NOT_WELCOME = (401, 403)
_RECORDED = "wiretape"  # flow.metadata: the exchange's number
_AHEAD = "wiretape.ahead"  # flow.metadata: the chunk that comes next is recorded already
_SLICE = 64 * 1024  # bytes of a body that the worker records at a time: large bodies take turns
_ROUTE = "wiretape.route"  # flow.metadata: how a request came here, if by a base-URL route


class RecorderInterface(Protocol):
    """What the addon needs of a recorder."""

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
    """One per proxy, with its gate. `own_port`: the proxy's; None: it has no path routes (a user's mitmproxy)."""

    def __init__(
        self,
        recorder: RecorderInterface,
        hosts: Hosts,
        on_trouble: Callable[[str], None],
        *,
        upstream: str | None = None,
        via: UpstreamProxy | None = None,
        led: Mapping[str, str] | None = None,
        routed: frozenset[tuple[str, int]] = frozenset(),
        admission: Admission | None = None,
    ) -> None:
        self.own_port: int | None = None
        self.layer_choice = LayerChoice(hosts, self._bypassed, via)
        self.open: set[int] = set()  # exchanges that have not ended
        self.unrouted: set[str] = set()  # requests to our own port that lead nowhere
        self.distrusted: set[str] = set()  # hosts for which a client refused our certificate
        self.through_tls: set[str] = set()  # recorded hosts whose TLS was opened here
        self._unasked: dict[str, str] = {}  # connections in TLS on which nothing was asked yet, each with its host
        self.led = dict(led or {})  # hosts that a default leads to, each with the variable that the user had not set
        self._routed = routed  # hosts and ports that base URLs lead to
        self._admission = admission or Admission()
        self._recorder = recorder
        self.trouble = on_trouble
        self.tools = ToolReports(recorder, self._safely)
        self._upstream = upstream
        self._via = via
        self._stopped = False
        self._worker = ThreadPoolExecutor(1, "wiretape-bodies")  # records large chunks while the loop serves others
        chunks.install()

    def stop(self) -> None:
        """Record nothing any more: what is still open ends as the recorder says. Traffic flows on."""
        self._stopped = True
        self._worker.shutdown()  # what waits there returns at once now; cancelled, it would end the traffic behind it

    # connections

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Speak TLS with the upstream first, so that the client is offered the protocols that the upstream has.

        The connection itself is opened only now: with mitmproxy's eager strategy a host that cannot be reached would
        be refused before there is a request to record.
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
        self._unasked[data.conn.id] = data.conn.sni or (server.address[0] if server.address else "")

    def client_disconnected(self, client: connection.Client) -> None:
        """Some clients (GnuTLS) finish the handshake, look at the certificate then, and go without an alert."""
        host = self._unasked.pop(client.id, None)
        if host and host not in self.distrusted | self.through_tls:
            self.distrusted.add(host)
            self.trouble(
                f"a client opened TLS to {host} and left without a request: "
                "most likely it did not accept wiretape's certificate"
            )

    # requests

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if not self._is_recorded(flow):
            return
        x = self._begin(flow)
        if x is not None and not _is_held(flow.request):
            flow.request.stream = self._tee(self._recorder.request_data, x, flow)

    def _is_recorded(self, flow: http.HTTPFlow) -> bool:
        """Whether a request is to be recorded; what is not flows on as it comes."""
        self._unasked.pop(flow.client_conn.id, None)
        if flow.error or flow.response or not self._find_way(flow):
            return False
        request = flow.request
        if self._via is not None:
            self._via.direct(flow)
        if not (flow.metadata.get(_ROUTE) or self.layer_choice.is_recorded(request.host, request.port)):
            request.stream = True
            return False
        drop_what_cannot_be_kept(request)
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
        """The number of the exchange that a flow is recorded as."""
        x: int | None = flow.metadata.get(_RECORDED)
        return x

    def _find_way(self, flow: http.HTTPFlow) -> bool:
        """Send a request to our own port where its path leads; answer it here if it leads nowhere."""
        request = flow.request
        if self.own_port is None:
            return True
        authority = request.host_header or f"127.0.0.1:{self.own_port}"
        if self.layer_choice.speaks_as_to_a_server(flow.client_conn):
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
        """A large chunk of a streamed body, before the tee gets it."""
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
        if response.status_code in _NOT_WELCOME:
            self._doubt(flow, f"{flow.request.host} answered {response.status_code}")
        response.stream = self._tee(self._recorder.response_data, x, flow)
        self._keep_on_route(flow)

    def _keep_on_route(self, flow: http.HTTPFlow) -> None:
        """Rewrite the links in a recorded answer to a client on a base-URL route. The tape has them as they came."""
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
            self.trouble(_led_off(route.url, target))

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
            # Without a recorder the client would see its connection fail: let it see that, not a page of ours.
            flow.kill()

    async def websocket_message(self, flow: http.HTTPFlow) -> None:
        assert flow.websocket is not None
        message = flow.websocket.messages[-1]
        del flow.websocket.messages[:-1]  # they would pile up for as long as the connection lasts
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
        """The program may have been meant to go elsewhere, by a default of its own."""
        variable = self.led.get(flow.request.host) if flow.metadata.get(_ROUTE) else None
        if variable is not None:
            said = doubt(flow.request.host, variable)
            self.trouble(f"{what}: {said}" if what else said)

    # the recorder's side

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
            return data  # always: what a tee does not return never reaches the other side

        return tee

    async def _record(self, record: Callable[[int, bytes], None], x: int, data: bytes) -> None:
        """Record a part of a body before it is passed on. Other calls are served while the worker has a large one."""
        if len(data) <= LARGE:
            self._safely(record, x, data)
            return
        for start in range(0, len(data), _SLICE):
            await self._in_worker(record, x, data[start : start + _SLICE])

    def _in_worker(self, record: Callable[..., None], *values: Any) -> Awaitable[None]:
        try:
            return asyncio.get_running_loop().run_in_executor(self._worker, self._safely, record, *values)
        except RuntimeError:  # the recording has stopped, and the worker with it
            return asyncio.sleep(0)

    def _safely(self, record: Callable[..., Any], *values: Any) -> Any:
        """Call the recorder; whatever goes wrong there, traffic flows on and the person is told."""
        if self._stopped:
            return None
        try:
            return record(*values)
        except Exception as error:
            self.trouble(f"recording failed: {type(error).__name__}: {error}")
            return None


def _ended(flow: http.HTTPFlow) -> Ended:
    """Who ended a flow that broke. mitmproxy words a reset HTTP/2 stream alike for both sides: its reason tells."""
    message = flow.error.msg if flow.error else ""
    server = flow.server_conn
    if message.lower().startswith("client disconnected") or message == "connection cancelled":
        return Ended.CLIENT_CLOSED  # the other two: it went while its upstream was being connected to
    if message.startswith("stream reset by client"):
        return Ended.CLIENT_CLOSED if any(reason in message for reason in _CLIENT_CANCELS) else Ended.UPSTREAM_CLOSED
    if flow.response is None and (server.error or server.timestamp_tcp_setup is None):
        return Ended.UPSTREAM_UNREACHABLE
    return Ended.UPSTREAM_CLOSED


def _is_held(request: http.Request) -> bool:
    if "transfer-encoding" in request.headers:
        return False
    length = request.headers.get("content-length")
    if length is None:
        # Over HTTP/1 there is no body; over HTTP/2 there may be one of any size.
        return not request.is_http2
    return length.isdigit() and int(length) <= HELD_REQUEST_BYTES


def drop_what_cannot_be_kept(request: http.Request) -> None:
    """What was said to a proxy only, and two offers that mitmproxy cannot keep.

    Those are upgrades to h2c, and compressed WebSockets: a ping between fragments of one would kill the connection.
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


def _led_off(url: str, target: str) -> str:
    return (
        f"{urlsplit(url).netloc} sends its client to {without_query(target)}, which is left as it is: "
        "requests there are recorded only if they obey the proxy variables"
    )


def _no_route(path: str, port: int) -> str:
    return (
        f"wiretape: {path.partition('?')[0]} names no host. Use http://127.0.0.1:{port}/HOST/PATH as the base URL, "
        "or say with --upstream URL where such requests go"
    )
