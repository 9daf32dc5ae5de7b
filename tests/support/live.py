"""A stage for the live debugger: a replay on loopback, a debugger that holds its calls, and agents as threads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from tests.support.views import shown
from wiretape.adapters.live.decision_queue import DecisionQueue
from wiretape.adapters.live.edit_operations import EditOperations
from wiretape.adapters.live.holding import ReplayHolding
from wiretape.adapters.live.model_calls import LiveTape
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.cli.debug.open_debugger import live_annotations
from wiretape.debug.live.program import LiveProgram
from wiretape.debug.session import Debugger
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import ReplayOptions
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape
from wiretape.views.debug.reply import reply_view
from wiretape.wire.registry import decode

CAPTURES = Path(__file__).parent.parent.parent / "captures"
PATIENCE_S = 30


@dataclass
class Stage:
    """`play(agent, …)` starts agents at the first `continue`; `type_in` returns the text that a user sees."""

    queue: DecisionQueue
    url: str
    session: Any  # a ReplaySession, where they are played
    _agents: list[Callable[[], object]] = field(default_factory=list)
    results: list[Future[Any]] = field(default_factory=list)

    @property
    def live(self) -> LiveProgram:
        return self.queue.live

    def play(self, *agents: Callable[[], object]) -> None:
        self._agents = list(agents)
        self.results = [Future() for _ in agents]
        self.live.start = self._start

    def _start(self) -> None:
        left = len(self._agents)
        lock = threading.Lock()

        def act(agent: Callable[[], object], result: Future[Any]) -> None:
            nonlocal left
            try:
                result.set_result(agent())
            except Exception as error:
                result.set_exception(error)
            with lock:
                left -= 1
                last = left == 0
            if last:
                self.queue.run_now(lambda: self.live.ended(0))

        for agent, result in zip(self._agents, self.results, strict=True):
            threading.Thread(target=act, args=(agent, result), daemon=True).start()

    def type_in(self, *lines: str) -> str:
        """The transcript of typed lines and their replies."""
        said = []
        for line in lines:
            reply = self.queue.execute(line)
            said.append(f"(wiretape) {line}\n" + shown(reply_view(reply), 80))
            if reply.waits:
                said.append(shown(reply_view(self.queue.wait()), 80))
        return "".join(said)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def ask(self, body: Any, path: str = "/api.deepseek.com/responses", **headers: str) -> httpx.Response:
        with httpx.Client(timeout=PATIENCE_S, trust_env=False) as client:
            return client.post(self.url + path, json=body, headers=headers)

    def result(self, place: int = 0) -> Any:
        return self.results[place].result(PATIENCE_S)


@contextmanager
def stage(tapes: Sequence[Any] | None = None, live_tape: LiveTape | None = None) -> Iterator[Stage]:
    """By default captures/subagents.tape is played. `live_tape`: where the answers of real models are kept."""
    read = list(tapes or [read_tape(CAPTURES / "subagents.tape")])
    session = ReplaySession(read, ReplayOptions(names=("a.tape",)))
    debugger = Debugger(build_run([]))
    expected = build_run(decode(read[0].exchanges))
    live = debugger.live = LiveProgram(debugger, "replay", time.monotonic, EditOperations(), expected=expected)
    debugger.annotate(live_annotations("agents", debugger, live))
    with (
        DecisionQueue(debugger) as queue,
        ReplayServer(session, ReplayServerOptions(interpose=ReplayHolding(queue, session, live_tape))) as replaying,
    ):
        made = Stage(queue, f"http://127.0.0.1:{replaying.port}", session)
        try:
            yield made
        finally:
            queue.release_all()
            wait(made.results, PATIENCE_S)  # no agent outlives its test


@contextmanager
def recorded_stage(upstream: str, tape: Path, state: Path) -> Iterator[Stage]:
    """Agents are recorded onto a tape; `upstream` is their model's base URL, `Stage.url` the URL of the recorder."""
    from functools import partial

    from wiretape.adapters.mitm.live.holding import HoldingAddon
    from wiretape.app.recording_server import RecordingServer
    from wiretape.tape.recording.recorder import Recorder
    from wiretape.tape.redaction import Redactor

    environ = {"XDG_STATE_HOME": str(state), "OPENAI_BASE_URL": upstream}
    debugger = Debugger(build_run([]))
    live = debugger.live = LiveProgram(debugger, "record", time.monotonic, EditOperations(recording=True))
    debugger.annotate(live_annotations("agents", debugger, live))
    troubles: list[str] = []
    told: list[HoldingAddon] = []
    recorder = Recorder(
        tape,
        clock=time.monotonic,
        started=datetime.now(UTC),
        redactor=Redactor(),
        on_exchange=lambda exchange: told[0].recorded(exchange),
        on_trouble=troubles.append,
    )
    with DecisionQueue(debugger) as queue:
        running = RecordingServer(recorder, environ, troubles.append, addon=partial(HoldingAddon, queue=queue))
        assert isinstance(running.addon, HoldingAddon)
        told.append(running.addon)
        with running:
            made = Stage(queue, running.variables()["OPENAI_BASE_URL"], None)
            try:
                yield made
            finally:
                queue.release_all()
                wait(made.results, PATIENCE_S)
        recorder.close()
    assert troubles == []


def recorded(number: int) -> Any:
    """The body of a request on captures/subagents.tape."""
    from wiretape.model.http import body_bytes

    tape = read_tape(CAPTURES / "subagents.tape")
    return json.loads(body_bytes(tape.exchanges[number - 1].request.body))
