"""Options that several commands share: one name, one meaning and one help text each.

`when` says in which of a command's cases an option applies; the help text begins with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_TIERS = ("exact", "normalized", "masked")


def _all(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Combine options into one decorator, in the order of the help page."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
note_option = click.option("--note", metavar="TEXT", help="Put a note into the tape's header.")
port_option = click.option("--port", type=click.IntRange(1, 65535), help="Listen on this port (default: any free one).")
tag_option = click.option(
    "--tag", is_flag=True, help="Prefix each line that CMD prints with the call answered last: [3] text."
)
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Print the settings that CMD gets, and further details of the run."
)
new_tape_option = click.option(
    "-o", "--output", metavar="NEW.tape", type=click.Path(path_type=Path), help="Write the new tape to this file."
)


def force_option(when: str = "") -> Callable[[F], F]:
    """`--force`: replace an existing file."""
    return click.option("--force", is_flag=True, help=f"{when}Replace the output file if it exists.")


def tool_arguments_option(name: str) -> Callable[[F], F]:
    """`--redact-tool-arguments`, passed to the command as `name`."""
    return click.option(
        "--redact-tool-arguments",
        name,
        is_flag=True,
        help="Redact credentials in tool arguments, too: a replay passes placeholders to the tools.",
    )


def tier_option(when: str = "", *, position: bool = False) -> Callable[[F], F]:
    """`--tier`: how strictly requests are matched. Only replays may match by `position`."""
    return click.option(
        "--tier",
        type=click.Choice([*_TIERS, "position"] if position else _TIERS),
        default="masked",
        help=f"{when}Require matches of this tier at least (default: masked).",
    )


def pass_option(when: str = "") -> Callable[[F], F]:
    """`--pass`: hosts that a replay does not block."""
    return click.option(
        "--pass",
        "let_through",
        metavar="GLOB",
        multiple=True,
        help=f"{when}Allow connections to this host, or host:port (for the agent's tools).",
    )


def recorded_hosts_options(when: str = "") -> Callable[[F], F]:
    """`--host` and `--upstream`: what is recorded, and from where."""
    return _all(
        click.option(
            "--host",
            "hosts",
            metavar="GLOB",
            multiple=True,
            help=f"{when}Record this host, too (api.example.com, *.corp).",
        ),
        click.option("--upstream", metavar="URL", help=f"{when}Send requests that name no host to this base URL."),
    )


recording_options = _all(
    recorded_hosts_options(),
    click.option("--all", "everything", is_flag=True, help="Record every host."),
    click.option("--keep-unset", is_flag=True, help="Set no base-URL variable that you have not set."),
)
"""Options of every command that records a program."""

admission_options = _all(
    click.option(
        "--allow-host",
        "allow_hosts",
        metavar="GLOB",
        multiple=True,
        help="Serve requests with this Host header, too, as behind a reverse proxy.",
    ),
    click.option(
        "--allow-origin",
        "allow_origins",
        metavar="GLOB",
        multiple=True,
        help="Serve web pages of this origin, too, such as https://app.example.",
    ),
)
"""Which requests a listening server accepts."""

live_model_options = _all(
    click.option("--model", metavar="NAME", help="Use this model for live requests."),
    click.option("--base-url", metavar="URL", help="Send live requests to this endpoint of the same wire format."),
    click.option(
        "--key-env", metavar="NAME", help="Read the API key from this variable (default: the provider's usual one)."
    ),
    click.option(
        "--tools",
        "tool_file",
        metavar="FILE.py",
        help="Run the functions in this file for tool calls without a recorded result.",
    ),
)
"""Options of commands that send the requests of a tape to a live model."""
