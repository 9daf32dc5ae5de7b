"""Options that several commands share: one name, one meaning and one help text each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_TIERS = ("exact", "normalized", "masked")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
force_option = click.option("--force", is_flag=True, help="Replace the output file if it exists.")
new_tape_option = click.option(
    "-o", "--output", metavar="NEW.tape", type=click.Path(path_type=Path), help="Write the new tape to this file."
)
port_option = click.option("--port", type=click.IntRange(1, 65535), help="Listen on this port (default: any free one).")
tag_option = click.option(
    "--tag", is_flag=True, help="Prefix each line that CMD prints with the call answered last: [3] text."
)
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Print the settings that CMD gets, and further details of the run."
)
pass_option = click.option(
    "--pass",
    "let_through",
    metavar="GLOB",
    multiple=True,
    help="Allow connections to this host, or host:port (for the agent's tools).",
)


def tier_option(when: str = "", *, position: bool = False) -> Callable[[F], F]:
    """`--tier`: how strictly requests are matched. `when` says when the option applies. Only replays use `position`."""
    return click.option(
        "--tier",
        type=click.Choice([*_TIERS, "position"] if position else _TIERS),
        default="masked",
        help=f"{when}Require matches of this tier at least (default: masked).",
    )


def recorded_hosts_options(command: F) -> F:
    """`--host` and `--upstream`: what a recording records."""
    for option in (
        click.option("--upstream", metavar="URL", help="Send requests that name no host to this base URL."),
        click.option(
            "--host", "hosts", metavar="GLOB", multiple=True, help="Record this host, too (api.example.com, *.corp)."
        ),
    ):
        command = option(command)
    return command


def recording_options(command: F) -> F:
    """Options of every command that records a program."""
    for option in (
        click.option("--keep-unset", is_flag=True, help="Set no base-URL variable that you have not set."),
        click.option("--all", "everything", is_flag=True, help="Record every host."),
        recorded_hosts_options,
    ):
        command = option(command)
    return command


def admission_options(command: F) -> F:
    """`--allow-host` and `--allow-origin`: which requests a listening server accepts."""
    for option in (
        click.option(
            "--allow-origin",
            "allow_origins",
            metavar="GLOB",
            multiple=True,
            help="Serve web pages of this origin, too, such as https://app.example.",
        ),
        click.option(
            "--allow-host",
            "allow_hosts",
            metavar="GLOB",
            multiple=True,
            help="Serve requests with this Host header, too, as behind a reverse proxy.",
        ),
    ):
        command = option(command)
    return command


def live_model_options(command: F) -> F:
    """Options of commands that send the requests of a tape to a live model."""
    for option in (
        click.option(
            "--tools",
            "tool_file",
            metavar="FILE.py",
            help="Run the functions in this file for tool calls without a recorded result.",
        ),
        click.option(
            "--key-env", metavar="NAME", help="Read the API key from this variable (default: the provider's usual one)."
        ),
        click.option("--base-url", metavar="URL", help="Send live requests to this endpoint of the same wire format."),
        click.option("--model", metavar="NAME", help="Use this model for live requests."),
    ):
        command = option(command)
    return command
