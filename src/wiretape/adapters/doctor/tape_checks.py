"""Checks of `wiretape doctor TAPE`: why a tape has no model call, or fewer than the program made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

from wiretape.model.http import Exchange
from wiretape.model.run import Run
from wiretape.model.wording import plural
from wiretape.tape.reading.reader import Tape
from wiretape.views.doctor import Check

_MOST_SHOWN = 10


def tape_checks(name: str, tape: Tape, run: Run) -> Iterator[Check]:
    """Yield the most likely reasons first."""
    yield _calls_check(name, tape, run)
    for warning in tape.warnings:
        yield Check(level="warn", what="tape", said=warning)
    if tape.incomplete:
        yield Check(level="warn", what="tape", said="it is incomplete: its recorder was killed, or a write failed")
    yield from _bypassed_checks(tape, run)
    others = [exchange for exchange in tape.exchanges if exchange.number in set(run.other_exchanges)]
    yield from _failed_checks(others)
    yield from _unknown_checks(name, [one for one in others if one.ended != "upstream_unreachable"], run)
    if not tape.exchanges:
        yield from _empty_checks(name)


def _calls_check(name: str, tape: Tape, run: Run) -> Check:
    exchanges = plural(len(tape.exchanges), "exchange")
    if run.steps:
        calls = plural(len(run.steps), "model call")
        return Check(level="ok", what="calls", said=f"{calls} in {exchanges}")
    return Check(level="fail", what="calls", said=f"no model call in {exchanges} on {name}")


def _bypassed_checks(tape: Tape, run: Run) -> Iterator[Check]:
    for host in tape.header.bypassed or ():
        yield Check(
            level="ok" if run.steps else "warn",
            what="let through",
            said=f"{host} was not recorded: it is not a known provider",
            next=f"if it serves the model: wiretape record --host {host} …",
        )


def _failed_checks(others: list[Exchange]) -> Iterator[Check]:
    hosts = Counter(urlsplit(one.request.url).netloc for one in others if one.ended == "upstream_unreachable")
    for host, times in hosts.most_common(_MOST_SHOWN):
        said = f"{host} could not be reached ({plural(times, 'time')})"
        yield Check(
            level="warn", what="unreachable", said=said, next="check the network, and the proxy if there is one"
        )


def _unknown_checks(name: str, others: list[Exchange], run: Run) -> Iterator[Check]:
    """Report exchanges in no known wire format, grouped by method, URL and status."""
    places = Counter(_place(one) for one in others)
    first = {_place(one): one.number for one in reversed(others)}
    for place, times in places.most_common(_MOST_SHOWN):
        yield Check(
            level="ok" if run.steps else "warn",
            what="no format",
            said=f"{place}" + (f", {times} times" if times > 1 else ""),
            next=None if run.steps else f"to see it: wiretape show {name} x{first[place]}",
        )
    if len(places) > _MOST_SHOWN:
        said = f"{len(places) - _MOST_SHOWN} more places; wiretape show {name} lists them"
        yield Check(level="ok", what="no format", said=said)


def _place(exchange: Exchange) -> str:
    parts = urlsplit(exchange.request.url)
    status = f" → {exchange.response.status}" if exchange.response is not None else ""
    kind = exchange.request.headers.get("content-type") or ""
    kind_text = f" ({kind.partition(';')[0]})" if kind else ""
    return f"{exchange.request.method} {parts.netloc}{parts.path}{kind_text}{status}"


def _empty_checks(name: str) -> Iterator[Check]:
    yield Check(
        level="warn",
        what="base URL",
        said="no request arrived. A base URL in the program's code or configuration bypasses wiretape",
        next=f"wiretape record --port 8123 -o {name} --force -- …, and the base URL http://127.0.0.1:8123/HOST/PATH",
    )
    yield Check(
        level="warn",
        what="proxy",
        said="some clients ignore proxy variables: Node's fetch before 22.21, aiohttp without trust_env=True, "
        "PHP's fopen, Erlang and Elixir, Rust's ureq 2, a JVM that was not started by its own name",
        next="wiretape doctor -- CMD checks the program",
    )
    yield Check(
        level="warn",
        what="process",
        said="a process that already runs, a container and a remote machine have other environments; sudo and env -i "
        "drop variables; and wiretape does not wait for background processes after the command has ended",
        next=f"wiretape record -o {name} --force prints the lines to paste there",
    )
