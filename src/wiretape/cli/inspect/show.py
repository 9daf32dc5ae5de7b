"""`wiretape show`: the overview of a tape, one of its calls, or an exchange."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from wiretape.cli.shared_options import json_option
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.cli.tapes import OpenedTape
    from wiretape.model.http import Exchange
    from wiretape.model.run import Step


@click.command("show")
@click.argument("tape", metavar="TAPE")
@click.argument("call", metavar="[CALL]", required=False)
@click.option("--full", is_flag=True, help="Show the whole history and the tools, nothing shortened.")
@click.option("--raw", is_flag=True, help="Write request and response as on the wire, bodies byte for byte.")
@json_option
def command(tape: str, call: str | None, full: bool, raw: bool, as_json: bool) -> None:
    """Show a TAPE, or one of its calls.

    CALL is the number of a model call (2), or an exchange (x3). Without CALL: the tape's header, and all its
    exchanges. With CALL: the messages that the call adds to its thread, and the answer.
    """
    if raw and (as_json or full):
        raise UsageError(
            f"--raw writes the bytes of an exchange: do not combine it with {'--json' if as_json else '--full'}"
        )
    if raw and call is None:
        raise UsageError("--raw needs a CALL, such as: wiretape show TAPE 1 --raw")
    from wiretape.cli.tapes import is_call, open_tape

    if call is not None and is_call(tape) and not is_call(call):
        raise UsageError(f"the tape goes first; did you mean: wiretape show {shlex.quote(call)} {tape}")
    opened = open_tape(tape, show=True)
    if call is None:
        _overview(opened, as_json)
        return
    exchange, steps = find(opened, call)
    if raw:
        _raw(exchange, steps if call.isdecimal() else [])
    elif len(steps) == 1:
        _call(opened, steps[0], full, as_json)
    else:
        _exchange(exchange, steps, full, as_json)


def find(opened: OpenedTape, call: str) -> tuple[Exchange, list[Step]]:
    """Return the exchange that CALL names, and its model calls: the named one, or all of them."""
    exchanges = {exchange.number: exchange for exchange in opened.tape.exchanges}
    digits = call[1:] if call[:1] in ("x", "X") else call
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None
    if number is None:
        raise UsageError(f"CALL is {call!r}: use the number of a model call, such as 2, or an exchange, such as x3")
    if digits != call:
        if number in exchanges:
            return exchanges[number], [step for step in opened.run.steps if step.call.exchange == number]
        raise UsageError(f"{opened.name} has no exchange x{number}; it has {_contents(opened)}")
    for step in opened.run.steps:
        if step.call.number == number:
            return exchanges[step.call.exchange], [step]
    raise UsageError(f"{opened.name} has no call {number}; it has {_contents(opened)}")


def _contents(opened: OpenedTape) -> str:
    """Return the calls and exchanges of a tape in words."""
    calls, exchanges = opened.run.steps, opened.tape.exchanges
    said = []
    if calls:
        last = calls[-1].call.number
        said.append("call 1" if last == 1 else f"calls 1 to {last}")
    else:
        said.append("no model calls")
    if exchanges:
        first, final = exchanges[0].number, exchanges[-1].number
        said.append(f"exchange x{first}" if first == final else f"exchanges x{first} to x{final}")
    return " and ".join(said)


def _overview(opened: OpenedTape, as_json: bool) -> None:
    tape, run = opened.tape, opened.run
    if as_json:
        from wiretape.cli.tapes import print_json
        from wiretape.views.show.show_json import tape_json

        print_json(tape_json(opened.name, tape.header, tape.exchanges, run))
        return
    from wiretape.views.show.tape import tape_view
    from wiretape.views.terminal import make_console

    make_console().print(tape_view(opened.name, tape.header, tape.exchanges, run))


def _call(opened: OpenedTape, step: Step, full: bool, as_json: bool) -> None:
    from wiretape.analyze.why import why

    said = why(step, opened.run)
    if as_json:
        from wiretape.cli.tapes import print_json
        from wiretape.views.show.show_json import call_json

        print_json(call_json(step, opened.run, said, full=full))
        return
    from wiretape.views.show.call import call_view
    from wiretape.views.terminal import make_console

    make_console().print(call_view(step, opened.run, said, full=full))


def _exchange(exchange: Exchange, steps: list[Step], full: bool, as_json: bool) -> None:
    if as_json:
        from wiretape.cli.tapes import print_json
        from wiretape.views.show.show_json import exchange_json

        print_json(exchange_json(exchange) | {"calls": [step.call.number for step in steps]})
        return
    from wiretape.views.show.exchange import exchange_view
    from wiretape.views.terminal import make_console

    make_console().print(exchange_view(exchange, calls=tuple(step.call.number for step in steps), full=full))


def _raw(exchange: Exchange, steps: list[Step]) -> None:
    """Write the bytes of an exchange; of a call on a WebSocket, only its messages. A terminal gets escapes."""
    from wiretape.cli.tapes import write_bytes
    from wiretape.views.show.exchange import raw_exchange

    frames = steps[0].call.frames if steps else ()
    if frames:
        messages = tuple(exchange.messages[frame - 1] for frame in frames)
        exchange = replace(exchange, messages=messages)
    data = raw_exchange(exchange)
    if sys.stdout.isatty():
        from wiretape.views.printable import visible

        data = visible(data.decode(errors="backslashreplace")).encode()
    write_bytes(data)
