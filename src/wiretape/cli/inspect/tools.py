"""`wiretape tools`: the cost of each tool of a tape."""

from __future__ import annotations

import click

from wiretape.cli.shared_options import json_option
from wiretape.cli.tapes import partial_option


@click.command("tools")
@click.argument("tape", metavar="TAPE")
@json_option
@partial_option
def command(tape: str, as_json: bool) -> None:
    """Show what each tool of TAPE costs, in tokens.

    Three facts for each tool: the tokens of its schema, which every request carries; the tokens that its calls and
    results add to the context; and whether that context stays append-only, so that a prompt cache can serve it.
    """
    from wiretape.analyze.tool_costs import tool_costs
    from wiretape.cli.tapes import open_tape, print_json

    report = tool_costs(open_tape(tape).run)
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    from wiretape.views.stats.tools import tools_view
    from wiretape.views.terminal import make_console

    make_console().print(tools_view(report))
