"""Wires the commands together. Each command lives in the module of its name and is imported when it is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from wiretape import __version__
from wiretape.errors import WiretapeError

# name -> one line for the overview; the module wiretape.cli.NAME defines `command`.
COMMANDS: dict[str, str] = {
    "record": "Run a program and record what it sends to models.",
    "replay": "Run a program against a tape, offline.",
    "ls": "List tapes.",
    "show": "Show a tape, or one of its calls.",
    "stats": "Count calls, tokens and cache hits for each user turn.",
    "demo": "Record, replay and explain a small agent, from start to end.",
    "cut": "Write part of a tape as a new tape.",
    "merge": "Write several tapes as one.",
    "redact": "Remove secrets from a tape that is already written.",
    "schema": "Print the JSON Schema of a tape's documents.",
}


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"wiretape.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Start with: wiretape demo",
)
@click.version_option(__version__, prog_name="wiretape")
def app() -> None:
    """Record what an LLM agent really sent over the wire, replay it exactly, and explain it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; every expected failure is one clear line on stderr, never a traceback."""
    try:
        result = app.main(args=list(argv) if argv is not None else None, prog_name="wiretape", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except WiretapeError as error:
        click.echo(f"wiretape: {error}", err=True)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our pipe went away (`wiretape show … | head`): no one is left to tell.
        sys.stderr.close()
        return 141
    except OSError as error:
        click.echo(f"wiretape: {error.filename or 'system'}: {error.strerror or error}", err=True)
        return 2
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
