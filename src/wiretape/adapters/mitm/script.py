"""wiretape as a script of a mitmproxy that the user runs.

    mitmweb -s "$(python -m wiretape.adapters.mitm.script)" --set wiretape_tape=agent.tape

The module prints its own path when it is run, and is a mitmproxy script when it is loaded as one. mitmproxy's own
modes and certificates apply, and base-URL routes are off.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mitmproxy import ctx

from wiretape.adapters.mitm._compat.fixes import bracket_ipv6, idle_timeout
from wiretape.adapters.mitm.addon import RecordingAddon
from wiretape.adapters.routing.hosts import Hosts
from wiretape.adapters.settings import load_settings, redactor_of
from wiretape.errors import UsageError, WiretapeError
from wiretape.tape.recording.recorder import Recorder

_IDLE_S = 24 * 3600
_log = logging.getLogger(__name__)


class TapeScript:
    """Adds wiretape's options, and the recording addon once mitmproxy runs."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._addon: RecordingAddon | None = None
        self._refused = False

    def load(self, loader: Any) -> None:
        loader.add_option("wiretape_tape", str, "", "Record model calls to this tape.")
        loader.add_option("wiretape_hosts", Sequence[str], [], "Also record these hosts (globs).")
        loader.add_option("wiretape_all", bool, False, "Record every host.")
        loader.add_option("wiretape_append", bool, False, "Append to an existing tape.")
        loader.add_option("wiretape_note", str, "", "A note in the tape's header.")

    def configure(self, updated: set[str]) -> None:
        """Start before mitmproxy listens, so that no request is missed. mitmproxy sets the options one by one."""
        if "wiretape_tape" in updated and ctx.options.wiretape_tape and self._recorder is None:
            asyncio.get_running_loop().call_soon(self._begin)

    def running(self) -> None:
        if self._recorder is None and not self._refused:
            self._begin()

    def _begin(self) -> None:
        try:
            self._start(self._tape())
        except WiretapeError as error:
            self._refused = True
            _log.error("wiretape: %s", error)  # while it starts, mitmproxy shows an error and exits

    def _tape(self) -> Path:
        if not ctx.options.wiretape_tape:
            raise UsageError("name the tape to record: --set wiretape_tape=NAME.tape")
        tape = Path(ctx.options.wiretape_tape).expanduser()
        if tape.exists() and not ctx.options.wiretape_append:
            raise UsageError(f"{tape} exists; --set wiretape_append=true appends to it")
        return tape

    def _start(self, tape: Path) -> None:
        options = ctx.options
        settings = load_settings(Path.cwd())
        self._recorder = Recorder(
            tape,
            clock=time.monotonic,
            started=datetime.now(UTC),
            redactor=redactor_of(settings),
            note=options.wiretape_note or None,
            on_trouble=_trouble,
            append=options.wiretape_append,
        )
        bracket_ipv6()
        hosts = Hosts([*options.wiretape_hosts, *settings.hosts], options.wiretape_all)
        self._addon = RecordingAddon(self._recorder, hosts, _trouble)
        options.update(**idle_timeout(max(getattr(options, "tcp_timeout", 0), _IDLE_S)))
        asyncio.get_running_loop().call_soon(_join, self._addon)

    def done(self) -> None:
        if self._addon is not None and self._recorder is not None:
            self._addon.stop()  # exchanges that break from now on were ended by mitmproxy
            summary = self._recorder.close()
            _log.info("wiretape: %d exchanges recorded", summary.exchanges)


def _join(addon: RecordingAddon) -> None:
    """Add the addon, and the layer choice before mitmproxy's own. It must not be called from an addon's hook."""
    ctx.master.addons.add(addon)
    ctx.master.addons.chain.insert(0, addon.layer_choice)


def _trouble(text: str) -> None:
    _log.warning("wiretape: %s", text)


addons = [TapeScript()]

if __name__ == "__main__":
    print(Path(__file__).resolve())
