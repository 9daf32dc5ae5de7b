"""The door below all doors: what reaches out with a socket of its own, and so is on no tape and answered from none.

A replay refuses it, a recording names it. This machine is free, and so is what a library with a door opens for a
request that goes on to the network. Code that opens its sockets outside of Python's `socket` module is not seen.
"""

from __future__ import annotations

from types import ModuleType

from wiretape.adapters.inprocess.active_context import enclosing_replay, innermost
from wiretape.adapters.inprocess.network_guard import SocketWatch, is_own_address, is_this_machine, plain
from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.routing.hosts import is_address, is_loopback
from wiretape.errors import NetworkRefused


class Watch(SocketWatch):
    """Asks the contexts that are open. A thread may belong to any of several: a name may be looked up for each of them,
    a connection is made route none of them forbids it."""

    def check(self, host: str, port: int | None) -> None:
        __tracebackhide__ = True
        host = plain(host)
        if is_this_machine(host) or (is_address(host) and is_own_address(host)):
            return
        names = frozenset(self.names(host))
        contexts = innermost()
        replaying = [around for one in contexts if (around := enclosing_replay(one)) is not None]
        refused = [said for one in replaying if (said := one.refusal(host, names, port)) is not None]
        if refused and (port is not None or len(refused) == len(contexts)):
            raise NetworkRefused(refused[0])
        for context in contexts:
            context.note_connection(host, names, port)

    def may_look_up(self, address: str) -> bool:
        replaying = [around for one in innermost() if (around := enclosing_replay(one)) is not None]
        if not is_loopback(address):
            replaying = [one for one in replaying if not (one.records_too or one.passes(plain(address), 0, False))]
        return not replaying


WATCH = Watch()


def patches(module: ModuleType) -> list[Patch]:
    return [Patch(owner, name, make) for owner, name, make in WATCH.watched()]
