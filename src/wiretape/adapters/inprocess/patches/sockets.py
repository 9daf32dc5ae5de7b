"""Detect raw-socket connections, which no library patch can record or replay.

A replay blocks them, and a recording reports them. Connections to this machine are allowed, and connections that a
patched library opens for a request that goes to the network. Only sockets of Python's `socket` module are seen.
"""

from __future__ import annotations

from types import ModuleType

from wiretape.adapters.inprocess.active_context import enclosing_replay, innermost
from wiretape.adapters.inprocess.network_guard import SocketWatch, is_own_address, is_this_machine, plain
from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.routing.hosts import is_address, is_loopback
from wiretape.errors import NetworkRefused


class ContextWatch(SocketWatch):
    """Applies the rules of the open contexts.

    A thread may belong to any of several contexts. It may look a name up if one of them allows it, and connect if none
    of them forbids it.
    """

    def check(self, host: str, port: int | None) -> None:
        __tracebackhide__ = True
        host = plain(host)
        if is_this_machine(host) or (is_address(host) and is_own_address(host)):
            return
        names = frozenset(self.names(host))
        contexts = innermost()
        replaying = [around for one in contexts if (around := enclosing_replay(one)) is not None]
        refusals = [text for one in replaying if (text := one.refusal(host, names, port)) is not None]
        if refusals and (port is not None or len(refusals) == len(contexts)):
            raise NetworkRefused(refusals[0])
        for context in contexts:
            context.note_connection(host, names, port)

    def may_look_up(self, address: str) -> bool:
        replaying = [around for one in innermost() if (around := enclosing_replay(one)) is not None]
        if not is_loopback(address):
            replaying = [one for one in replaying if not (one.records_misses or one.passes(plain(address), 0, False))]
        return not replaying


WATCH = ContextWatch()


def patches(module: ModuleType) -> list[Patch]:
    return [Patch(owner, name, make) for owner, name, make in WATCH.watched()]
