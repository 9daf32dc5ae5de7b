"""`wiretape cache`: explains what the provider's prompt cache served for each call of a tape."""

from __future__ import annotations

import click

from wiretape.cli.shared_options import json_option
from wiretape.cli.tapes import partial_option
from wiretape.errors import UsageError


@click.command("cache")
@click.argument("tape", metavar="TAPE")
@click.option("--call", "number", type=click.IntRange(1), metavar="N", help="Show call N with both texts at the break.")
@json_option
@partial_option
def command(tape: str, number: int | None, as_json: bool) -> None:
    """Explain for each call of TAPE what the prompt cache served, and why not more.

    A row has the tokens that an earlier call had sent, those that the cache can serve by the provider's rules, and
    those that the provider reports as cached. Below it: the verdict, the cost of a miss, and the change that fixes it.
    """
    from wiretape.cli.tapes import open_tape, print_json

    report = open_tape(tape).tape.cache()
    one = next((found for found in report.calls if found.call == number), None)
    if number is not None and one is None:
        numbers = [found.call for found in report.calls]
        held = f"its prompts are those of calls {', '.join(map(str, numbers[:20]))}" if numbers else "it has no prompts"
        raise UsageError(f"{tape} has no call {number} with a prompt; {held}{' …' if len(numbers) > 20 else ''}")
    if as_json:
        print_json((one or report).model_dump(mode="json"))
        return
    from wiretape.views.findings.cache import cache_call_view, cache_view
    from wiretape.views.terminal import make_console

    make_console().print(cache_call_view(one) if one is not None else cache_view(report))
