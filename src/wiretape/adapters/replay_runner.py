"""A running replay: the server and the gate on two loopback ports, in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any

from wiretape.adapters.http1.server import listen, serve
from wiretape.adapters.launch.child import proxy_variables
from wiretape.adapters.mitm.tls_interception import Authority, LazyReplayProxy
from wiretape.adapters.open_files import reported_once
from wiretape.adapters.replay_server.forward_proxy import ForwardProxy
from wiretape.adapters.replay_server.server import Interpose, ReplayHandler
from wiretape.adapters.routing.admission import Admission
from wiretape.adapters.routing.routes import base_url_variables
from wiretape.adapters.routing.tool_route import tool_variables
from wiretape.adapters.sealed.network import ANY_ADDRESS, SealedNetwork, make_sealed_network
from wiretape.adapters.sealed.transparent_proxy import TransparentProxy, intercepted_ports
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Outcome

# SDKs refuse to start without a key. Set only for providers that the tape has heard, and only where the user has none:
# some programs choose their provider by the keys they find. Where a tape has nothing on it (a test's that was never
# recorded), all of them are set: what must be told there is that there is no tape, not that there is no key.
_KEYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("api.openai.com", ("OPENAI_API_KEY",)),
    ("api.anthropic.com", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
    ("api.deepseek.com", ("DEEPSEEK_API_KEY",)),
    ("generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    ("openrouter.ai", ("OPENROUTER_API_KEY",)),
    ("api.mistral.ai", ("MISTRAL_API_KEY",)),
    ("api.groq.com", ("GROQ_API_KEY",)),
    ("api.x.ai", ("XAI_API_KEY",)),
    ("api.cerebras.ai", ("CEREBRAS_API_KEY",)),
    ("api.together.xyz", ("TOGETHER_API_KEY",)),
    ("api.cohere.com", ("CO_API_KEY",)),
    ("api.moonshot.cn", ("MOONSHOT_API_KEY",)),
    ("dashscope.aliyuncs.com", ("DASHSCOPE_API_KEY",)),
    ("ark.cn-beijing.volces.com", ("ARK_API_KEY",)),
)
_KEYS_OF_FORMATS = {
    "openai.chat": ("OPENAI_API_KEY",),
    "openai.responses": ("OPENAI_API_KEY",),
    "anthropic.messages": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini.generate": ("GEMINI_API_KEY",),
    "gemini.interactions": ("GEMINI_API_KEY",),
    "cohere.chat": ("CO_API_KEY",),
}
# Bedrock's addresses differ by region, so no default stands for them; the SDK also wants a region and credentials.
_BEDROCK_URLS = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "ANTHROPIC_BEDROCK_BASE_URL")
_AWS_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_AWS_IDENTITIES = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")
DUMMY_KEY = "sk-wiretape-replay"


class ReplayServer:
    """`with ReplayServer(session) as replaying:` serves until the block ends.

    `authority`: TLS is opened in its name; without one it stays closed, and `why_closed` says in a miss what would
    open it. `interpose` stands between answers and what is sent. `trouble` is told of what went wrong on the way.
    `lock` guards a session that other threads use, too. `sealed`: make `sealed_network`, in which programs can be
    started that reach nothing but both ports; UsageError if the system does not permit it. `allow_hosts` and
    `allow_origins`: globs of `Host` and `Origin` headers that are served besides those of this machine.
    """

    def __init__(
        self,
        session: ReplaySession,
        *,
        port: int = 0,
        proxy_port: int = 0,
        pace: float = 0,
        let_through: Sequence[str] = (),
        on_outcome: Callable[[Outcome], None] | None = None,
        interpose: Interpose | None = None,
        authority: Authority | None = None,
        why_closed: str = "",
        trouble: Callable[[str], None] = lambda text: None,
        lock: AbstractContextManager[Any] | None = None,
        sealed: bool = False,
        allow_hosts: Sequence[str] = (),
        allow_origins: Sequence[str] = (),
    ) -> None:
        self._session = session
        self._authority = authority
        self._trouble = trouble
        self._handler = ReplayHandler(
            session,
            pace,
            on_outcome=on_outcome,
            interpose=interpose,
            on_reset=self._reset,
            lock=lock,
            admission=Admission(allow_hosts, allow_origins, session.knows_host),
        )
        self._listening = listen(port)
        self._proxy_listening = listen(proxy_port)
        self.port: int = self._listening.getsockname()[1]
        self.proxy_port: int = self._proxy_listening.getsockname()[1]
        self.interceptor = self._make_interceptor(authority)
        everything = authority is not None and authority.everything
        self._proxy = ForwardProxy(
            session, self.port, let_through, on_outcome, self.interceptor, everything, why_closed
        )
        self.sealed_network = self._make_seal(let_through) if sealed else None
        self._transparent_proxy = TransparentProxy(self._proxy, self.proxy_port, session, let_through, trouble)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wiretape-replay", daemon=True)

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What leads a child here: base URLs to the server, proxies to the gate, keys so that SDKs start, and trust."""
        return {
            **base_url_variables(environ, self.port, offline=True),
            **proxy_variables(self.proxy_port),
            **dummy_keys(environ, self._session),
            **bedrock_variables(environ, self._session, self.port),
            **(self._authority.variables(environ) if self._authority is not None else {}),
            **tool_variables("replay", self.port),
        }

    def __enter__(self) -> ReplayServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self.interceptor is not None:
            self.interceptor.stop()
        if self.sealed_network is not None:
            self.sealed_network.close()

    @property
    def intercepted(self) -> dict[str, int]:
        """How many connections of a sealed program ignored its proxy variables and were served here, by `host:port`."""
        served, passed = self._transparent_proxy.connections, self._session.ledger.passed
        return {place: count for place, count in served.items() if place not in passed}

    def _make_seal(self, let_through: Sequence[str]) -> SealedNetwork:
        here = [("127.0.0.1", port) for port in (self.port, self.proxy_port)]
        try:
            return make_sealed_network([*here, *((ANY_ADDRESS, port) for port in intercepted_ports(let_through))])
        except BaseException:
            self._listening.close()
            self._proxy_listening.close()
            raise

    def _make_interceptor(self, authority: Authority | None) -> LazyReplayProxy | None:
        if authority is None:
            return None
        return LazyReplayProxy(authority.directory, self.port, self._tunnel_failed, self._trouble)

    def _tunnel_failed(self, host: str, port: int, why: str) -> None:
        """Called on the interceptor's thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._proxy.tunnel_failed, host, port, why)

    def _reset(self, address: tuple[str, int]) -> None:
        self._proxy.reset(address)

    def _run(self) -> None:
        with reported_once(self._trouble):
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()  # both sockets listen already: early connections wait in their queues
        await asyncio.gather(
            serve(self._handler, self._listening, self._stop),
            self._proxy.serve(self._proxy_listening, self._stop),
            *self._serving_inside(self._stop),
        )

    def _serving_inside(self, stop: asyncio.Event) -> list[Coroutine[Any, Any, None]]:
        if self.sealed_network is None:
            return []
        server, gate, *straight = self.sealed_network.listening
        return [
            serve(self._handler, server, stop),
            self._proxy.serve(gate, stop),
            self._transparent_proxy.serve(self.sealed_network, straight, stop),
        ]


def dummy_keys(environ: Mapping[str, str], session: ReplaySession) -> dict[str, str]:
    """Keys of the providers on the tape that the user has not set: the first of each row, if none of it is there."""
    nothing = not any(tape.exchanges for tape in session.tapes)
    rows = [names for host, names in _KEYS if nothing or session.knows_host(host)]
    rows += [_KEYS_OF_FORMATS[name] for name in session.formats if name in _KEYS_OF_FORMATS]
    return {names[0]: DUMMY_KEY for names in rows if not any(environ.get(name) for name in names)}


def bedrock_variables(environ: Mapping[str, str], session: ReplaySession, port: int) -> dict[str, str]:
    """What leads Bedrock's SDKs here and lets them start, if the tape has heard it. What the user set stays."""
    if not any(name.startswith("bedrock.") for name in session.formats):
        return {}
    variables = {name: f"http://127.0.0.1:{port}" for name in _BEDROCK_URLS if not environ.get(name)}
    if not any(environ.get(name) for name in _AWS_REGIONS):
        variables |= dict.fromkeys(_AWS_REGIONS, "us-east-1")
    if not any(environ.get(name) for name in _AWS_IDENTITIES):
        variables |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), DUMMY_KEY)
    return variables
