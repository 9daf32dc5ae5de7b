"""`with wiretape.record(…)`: records this process's requests while they go on as ever."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from wiretape.adapters.inprocess.arguments import shown
from wiretape.adapters.inprocess.context import Context, as_http, several
from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder, SafeRecorder, ToolCallRecorder
from wiretape.adapters.inprocess.network_guard import plain, proxies
from wiretape.adapters.old_tape import OldTape
from wiretape.adapters.output import say
from wiretape.adapters.routing.hosts import Hosts, is_address
from wiretape.adapters.settings import load_settings, redactor_of
from wiretape.compare.address import address
from wiretape.errors import TapeUnwritable, UsageError
from wiretape.model.http import Exchange
from wiretape.model.jsonvalue import Json
from wiretape.tape.recording.recorder import Recorder, RecorderSummary
from wiretape.tape.storage import journal_path
from wiretape.wire.mcp.tool_exchange import HEADERS, call_body, tool_url


class Record(Context):
    """What `wiretape.record` returns."""

    says_empty = True  # that nothing was recorded

    def __init__(
        self,
        path: str | os.PathLike[str],
        hosts: str | Sequence[str],
        everything: bool,
        append: bool,
        force: bool,
        note: str | None,
        provenance: str | None,
        on_exchange: Callable[[Exchange], None] | None,
    ) -> None:
        super().__init__()
        if append and force:
            raise UsageError("append goes on with a tape and force replaces it: give one of them")
        self.path = Path(path)
        self.name = f"the recording of {self.path}"
        self.summary: RecorderSummary | None = None
        self._extra = several(hosts)
        self._everything = everything
        self._append = append
        self._force = force
        self._note = note
        self._provenance = provenance
        self._on_exchange = on_exchange
        self._recorder: Recorder | None = None
        self._safe_recorder: SafeRecorder | None = None
        self._old: OldTape | None = None
        self._hosts = Hosts()
        self._said_forked = False
        self._through: set[str] = set()  # hosts whose requests went through a door
        self._reached: set[str] = set()  # hosts to record that were reached at all

    def begin(self) -> None:
        settings = load_settings(Path.cwd())
        self._check_tape()
        self._hosts = Hosts([*self._extra, *settings.hosts], self._everything)
        self._through, self._reached = set(), set()
        self._old = OldTape(self.path) if self._force else None
        try:
            self._recorder = Recorder(
                self.path,
                clock=time.monotonic,
                started=datetime.now(UTC),
                redactor=redactor_of(settings),
                on_exchange=self._on_exchange,
                on_trouble=say,
                append=self._append,
                note=self._note,
                provenance=self._provenance,
            )
        except BaseException:
            if self._old is not None:
                self._old.forget()
            raise
        self._safe_recorder = SafeRecorder(self._recorder, say)

    def finish(self, error: BaseException | None) -> None:
        if self._recorder is None or self.is_copy:
            return
        told = self._tell_past_doors()
        self._tell_under_way()
        self.summary = self._recorder.close()
        if self.says_empty and not self.summary.exchanges and error is None and not told:
            past = f" ({', '.join(self.summary.bypassed)} went past it)" if self.summary.bypassed else ""
            say(f"{self.path}: nothing was recorded{past}; name other hosts with hosts=[…], or use all=True")
        if self._old is None:
            return
        if self.summary.exchanges:
            self._old.forget()
        elif self._old.put_back():
            say(f"{self.path}: was not replaced, and is as it was")

    def _check_tape(self) -> None:
        try:
            is_dir = self.path.is_dir()
            there = any(path.exists() and path.stat().st_size for path in (self.path, journal_path(self.path)))
        except OSError as error:  # a name that is too long for the file system, say
            raise TapeUnwritable(f"{shown(str(self.path))}: cannot be written: {error.strerror or error}") from None
        if is_dir:
            raise TapeUnwritable(f"{self.path} is a directory: name a tape in it, such as {self.path / 'agent.tape'}")
        if there and not (self._append or self._force):
            raise UsageError(
                f"{self.path} exists already, and nothing was recorded\n"
                "  append=True goes on with it, force=True replaces it"
            )

    def note_connection(self, host: str, names: frozenset[str], port: int | None) -> None:
        was_looked_up = is_address(host) and len(names) > 1  # and noted then; several hosts may share an address
        if not was_looked_up and self._hosts.recorded(host, port or 0):
            self._reached.add(host)

    def _tell_past_doors(self) -> bool:
        """Hosts whose calls should be on the tape, and went past every door: whether there are any."""
        past = sorted(self._reached - self._through - proxies())
        for host in past:
            self.tell("bypassed", host)
        if past:
            say(
                f"{self.path}: {', '.join(past)} was reached past wiretape's doors: what was asked there is not on the "
                "tape\n  wiretape record -o TAPE -- CMD records more: it stands between the program and the network"
            )
        return bool(past)

    def _tell_under_way(self) -> None:
        count = self._safe_recorder.under_way if self._safe_recorder is not None else 0
        if count:
            were = "1 exchange was" if count == 1 else f"{count} exchanges were"
            say(f"{self.path}: {were} still under way when the recording ended: the tape has what had come by then")

    def tell(self, event: str, *values: Any) -> Any:
        """An event of the recorder, from another door onto the same tape: any thread may tell it, nothing is raised."""
        return self._safe_recorder.tell(event, *values) if self._safe_recorder is not None else None

    def forked(self) -> None:
        """Two processes cannot write one tape: a copy has the recorder's file, and not its threads."""
        super().forked()
        if self.forks is not None:
            self._safe_recorder = SafeRecorder(self.forks.remote("recorder"), say)

    def _takes(self) -> SafeRecorder | None:
        if self.is_copy and self.forks is not None:
            return self._safe_recorder
        if self.is_copy and not self._said_forked:
            self._said_forked = True
            say(
                f"{self.path}: what a forked process asks is not recorded; wiretape record -o TAPE -- CMD records a "
                "program and its children"
            )
        return None if self.is_copy else self._safe_recorder

    # what the doors ask

    def begin_tool_call(self, name: str, arguments: Json) -> ToolCallRecorder | None:
        taker = self._takes()
        if taker is None:
            return None
        try:
            data = orjson.dumps(call_body(name, arguments))
        except TypeError as error:  # nested too deeply, say: the tool runs all the same
            say(f"{self.path}: a call of {name} was not recorded: {error}")
            return None
        taken = taker.take("POST", tool_url(name), HEADERS)
        if taken is None:
            return None
        taken.sent(data)
        taken.sent_all()
        return ToolCallRecorder(taken)

    def begin_exchange(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        taker = self._takes()
        if taker is None:
            return None
        url = as_http(url)
        host, port = _host_and_port(method, url)
        self._through.add(plain(host))
        if not self._hosts.recorded(host, port):
            taker.tell("bypassed", host)
            return None
        return taker.take(method, url, headers)


def _host_and_port(method: str, url: str) -> tuple[str, int]:
    host, _, port = address(method, url).host.rpartition(":")
    if host and port.isdecimal():
        return host, int(port)
    return address(method, url).host, 443 if url.startswith(("https:", "wss:")) else 80
