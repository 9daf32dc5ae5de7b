"""The recording proxy: mitmproxy with the recording addon."""

from __future__ import annotations

import asyncio
import gc
import sys

from wiretape.adapters.mitm.addon import RecordingAddon
from wiretape.adapters.mitm.ca import ensure_ca
from wiretape.adapters.mitm.mitm_thread import MitmThread, ProxySettings, free_port
from wiretape.adapters.mitm.tool_port import ToolPort

__all__ = ["ProxySettings", "RecordingProxy", "ensure_ca", "free_port"]

_SWITCH_S = 0.0002  # how long other threads keep the GIL while the proxy waits, as it does 20 times in a call
_DRAIN_S = 1.0  # for exchanges to end after their clients have disconnected


class RecordingProxy(MitmThread):
    """mitmproxy with the recording addon, from `start` to `stop`. The addon's methods run on its thread."""

    def __init__(self, addon: RecordingAddon, settings: ProxySettings) -> None:
        super().__init__(settings, [addon.layer_choice], [addon], addon.trouble)
        self._addon = addon
        self._tools: ToolPort | None = None

    def start(self) -> int:
        self._switch_before = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        port = super().start()
        gc.freeze()  # a full garbage collection of mitmproxy's modules would stop every call for 65 ms
        return port

    def stop(self) -> None:
        super().stop()
        gc.unfreeze()
        sys.setswitchinterval(self._switch_before)

    @property
    def tool_port(self) -> int:
        """The port at which the program's wrapped tools report their calls."""
        assert self._tools is not None, "start it first"
        return self._tools.port

    def listens(self, port: int) -> None:
        self._addon.own_port = port
        self._tools = ToolPort(self._addon.tools)
        self._serving = asyncio.ensure_future(self._tools.serve())

    async def drained(self) -> None:
        deadline = asyncio.get_running_loop().time() + _DRAIN_S
        while self._addon.open and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)
        self._addon.stop()
        if self._tools is not None:
            self._tools.close()
            await self._serving
