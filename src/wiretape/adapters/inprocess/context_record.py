"""`with wiretape.record(…)`: records the requests of this process, and sends them as usual."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretape.adapters.arguments import shown
from wiretape.adapters.inprocess.context import PatchingContext, as_http
from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder, SafeRecorder, ToolCallRecorder
from wiretape.adapters.inprocess.network_guard import plain, proxies
from wiretape.adapters.old_tape import OldTape
from wiretape.adapters.output import say
from wiretape.adapters.routing.hosts import Hosts, is_address
from wiretape.compare.address import address
from wiretape.errors import TapeUnwritable, UsageError
from wiretape.model.wording import plural
from wiretape.tape.storage import journal_path

# Recorder and settings are imported when a context is entered: together they take a third of a second.
if TYPE_CHECKING:
    from wiretape.model.http import Exchange
    from wiretape.model.jsonvalue import Json
    from wiretape.tape.recording.recorder import Recorder, RecorderSummary


@dataclass(frozen=True, slots=True)
class RecordContextOptions:
    """The arguments of `wiretape.record`, and two of the pytest plugin."""

    hosts: tuple[str, ...] = ()
    everything: bool = False
    append: bool = False
    force: bool = False
    note: str | None = None
    provenance: str | None = None
    on_exchange: Callable[[Exchange], None] | None = None
    report_empty: bool = True  # print a notice if nothing was recorded
    on_unserved_children: Callable[[str], object] | None = None


class Record(PatchingContext):
    """The context that `wiretape.record` returns."""

    def __init__(self, path: str | os.PathLike[str], options: RecordContextOptions) -> None:
        super().__init__()
        if options.append and options.force:
            raise UsageError("append continues a tape and force replaces it: give one of them")
        self.path = Path(path)
        self.name = f"the recording of {self.path}"
        self.options = options
        self.on_unserved_children = options.on_unserved_children
        self.summary: RecorderSummary | None = None
        self._recorder: Recorder | None = None
        self._safe_recorder: SafeRecorder | None = None
        self._old: OldTape | None = None
        self._hosts = Hosts()
        self._reported_fork = False
        self._patched_hosts: set[str] = set()  # hosts of requests that a patch has seen
        self._connected_hosts: set[str] = set()  # hosts to record that any library connected to

    def begin(self) -> None:
        from wiretape.adapters.settings import load_settings, redactor_of
        from wiretape.tape.recording.recorder import Recorder

        settings = load_settings(Path.cwd())
        options = self.options
        self._check_tape()
        self._hosts = Hosts([*options.hosts, *settings.hosts], options.everything)
        self._patched_hosts, self._connected_hosts = set(), set()
        self._old = OldTape(self.path) if options.force else None
        try:
            self._recorder = Recorder(
                self.path,
                clock=time.monotonic,
                started=datetime.now(UTC),
                redactor=redactor_of(settings),
                on_exchange=options.on_exchange,
                on_trouble=say,
                append=options.append,
                note=options.note,
                provenance=options.provenance,
            )
        except BaseException:
            if self._old is not None:
                self._old.forget()
            raise
        self._safe_recorder = SafeRecorder(self._recorder, say)

    def finish(self, error: BaseException | None) -> None:
        if self._recorder is None or self.is_copy:
            return
        reported = self._report_unpatched()
        self._report_open_exchanges()
        self.summary = self._recorder.close()
        if self.options.report_empty and not self.summary.exchanges and error is None and not reported:
            bypassed = f" (not recorded: {', '.join(self.summary.bypassed)})" if self.summary.bypassed else ""
            say(f"{self.path}: nothing was recorded{bypassed}; name other hosts with hosts=[…], or use all=True")
        if self._old is None:
            return
        if self.summary.exchanges:
            self._old.forget()
        elif self._old.put_back():
            say(f"{self.path}: was not replaced, and is unchanged")

    def _check_tape(self) -> None:
        try:
            is_dir = self.path.is_dir()
            exists = any(path.exists() and path.stat().st_size for path in (self.path, journal_path(self.path)))
        except OSError as error:  # such as a name that is too long for the file system
            raise TapeUnwritable(f"{shown(str(self.path))}: cannot be written: {error.strerror or error}") from None
        if is_dir:
            raise TapeUnwritable(f"{self.path} is a directory: name a tape in it, such as {self.path / 'agent.tape'}")
        if exists and not (self.options.append or self.options.force):
            raise UsageError(
                f"{self.path} exists already, and nothing was recorded\n"
                "  append=True continues it, force=True replaces it"
            )

    def note_connection(self, host: str, names: frozenset[str], port: int | None) -> None:
        was_looked_up = is_address(host) and len(names) > 1  # and noted by name; several hosts may share an address
        if not was_looked_up and self._hosts.recorded(host, port or 0):
            self._connected_hosts.add(host)

    def _report_unpatched(self) -> bool:
        """Report hosts to record that only unpatched libraries connected to. Return True if there are any."""
        missed = sorted(self._connected_hosts - self._patched_hosts - proxies())
        for host in missed:
            self.record_event("bypassed", host)
        if missed:
            say(
                f"{self.path}: a library that wiretape does not patch connected to {', '.join(missed)}: those requests "
                "are not on the tape\n"
                "  wiretape record -o TAPE -- CMD records them, too: it is a proxy between the program and the network"
            )
        return bool(missed)

    def _report_open_exchanges(self) -> None:
        count = self._safe_recorder.open_exchanges if self._safe_recorder is not None else 0
        if count:
            were = f"{plural(count, 'exchange')} {'was' if count == 1 else 'were'}"
            say(f"{self.path}: {were} still open when the recording ended: the tape has only what arrived before")

    def record_event(self, event: str, *values: Any) -> Any:
        """Call a method of the recorder, from any thread. Return None if it fails."""
        return self._safe_recorder.record(event, *values) if self._safe_recorder is not None else None

    def after_fork(self) -> None:
        """Two processes cannot write one tape: a copy shares the recorder's file, but lacks its threads."""
        super().after_fork()
        if self.forks is not None:
            self._safe_recorder = SafeRecorder(self.forks.remote("recorder"), say)

    def _usable_recorder(self) -> SafeRecorder | None:
        if self.is_copy and self.forks is not None:
            return self._safe_recorder
        if self.is_copy and not self._reported_fork:
            self._reported_fork = True
            say(
                f"{self.path}: the requests of a forked process are not recorded; wiretape record -o TAPE -- CMD "
                "records a program and its children"
            )
        return None if self.is_copy else self._safe_recorder

    # what patches and tools call

    def begin_tool_call(self, name: str, arguments: Json) -> ToolCallRecorder | None:
        import orjson

        from wiretape.wire.mcp.tool_exchange import HEADERS, call_body, tool_url

        recorder = self._usable_recorder()
        if recorder is None:
            return None
        try:
            data = orjson.dumps(call_body(name, arguments))
        except TypeError as error:  # such as arguments that are nested too deeply: the tool runs anyway
            say(f"{self.path}: a call of {name} was not recorded: {error}")
            return None
        exchange = recorder.begin("POST", tool_url(name), HEADERS)
        if exchange is None:
            return None
        exchange.sent(data)
        exchange.sent_all()
        return ToolCallRecorder(exchange)

    def begin_exchange(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        recorder = self._usable_recorder()
        if recorder is None:
            return None
        url = as_http(url)
        host, port = _host_and_port(method, url)
        self._patched_hosts.add(plain(host))
        if not self._hosts.recorded(host, port):
            recorder.record("bypassed", host)
            return None
        return recorder.begin(method, url, headers)


def _host_and_port(method: str, url: str) -> tuple[str, int]:
    host, _, port = address(method, url).host.rpartition(":")
    if host and port.isdecimal():
        return host, int(port)
    return address(method, url).host, 443 if url.startswith(("https:", "wss:")) else 80
