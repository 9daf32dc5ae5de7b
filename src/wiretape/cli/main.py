"""Wires the commands together. Each command lives in the module of its name and is imported when it is asked for.

Whatever goes wrong leaves here as one clear line and an exit code; `WIRETAPE_DEBUG=1` shows the traceback instead.
"""

from __future__ import annotations

import errno
import importlib
import io
import keyword
import os
import sys
from collections.abc import Sequence

import click

from wiretape._version import __version__
from wiretape.adapters.open_files import raise_limit
from wiretape.cli.damaged import code_of
from wiretape.cli.streams import open_streams
from wiretape.errors import WiretapeError

# name -> one line for the overview; `module_of` names the module that defines its `command`.
COMMANDS: dict[str, str] = {
    "record": "Run a program and record what it sends to models.",
    "replay": "Run a program against a tape, offline.",
    "rerun": "Play a tape's scheduler without its program, offline or live.",
    "fork": "Change one thing in a recorded run, and go on from there live.",
    "verify": "Run a program live, and say whether its tape has drifted.",
    "ls": "List tapes.",
    "show": "Show a tape, or one of its calls.",
    "stats": "Count calls, tokens and cache hits for each user turn.",
    "cache": "Say what the prompt cache served, and why not more.",
    "tools": "Say what each tool costs in tokens.",
    "lint": "Look for what is wrong with an agent's loop.",
    "debug": "Walk a tape forward and back, with breakpoints.",
    "check": "Hold tapes to budgets, and to an older run.",
    "diff": "Compare two runs, and show where they part.",
    "demo": "Record, replay and explain a small agent, from start to end.",
    "cut": "Write part of a tape as a new tape.",
    "merge": "Write several tapes as one.",
    "merge-driver": "Merge tapes of two git branches (git runs this).",
    "redact": "Remove secrets from a tape that is already written.",
    "import": "Make a tape of recordings that other tools made.",
    "export": "Write a tape as HAR.",
    "doctor": "Check what recording and replay need; explain an empty tape.",
    "schema": "Print the JSON Schema of a tape's documents.",
}

# The folder below wiretape.cli -> the commands whose modules it holds.
FOLDERS: dict[str, tuple[str, ...]] = {
    "run": ("record", "replay", "rerun", "fork", "demo"),
    "debug": ("debug",),
    "inspect": ("ls", "show", "stats", "cache", "tools"),
    "compare": ("diff", "check", "lint", "verify"),
    "edit": ("cut", "merge", "merge-driver", "redact"),
    "integrate": ("import", "export", "doctor", "schema"),
}

EXIT_INTERNAL = 70  # a fault of wiretape's own (sysexits' EX_SOFTWARE): never to be taken for the program's code
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"wiretape.cli.{module_of(cmd_name)}").command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # `wiretape help` and `wiretape help record`, as many other tools have it.
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # Asked before click does: it looks for near names among commands that it has loaded, and these are lazy.
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(unknown_command(name))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = code_of(ctx, super().invoke(ctx))
            sys.stdout.flush()  # here, where a closed pipe is still ours to handle
        except OSError as error:
            if _is_closed_pipe(error):
                raise PipeClosed from error  # click would exit with 1, as if the command had failed
            raise
        except click.exceptions.Exit as error:
            raise click.exceptions.Exit(code_of(ctx, error.exit_code)) from None
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def module_of(name: str) -> str:
    """Return the module of a command, below wiretape.cli: `import` is `integrate.import_`."""
    folder = next((folder for folder, names in FOLDERS.items() if name in names), None)
    module = f"{name}_" if keyword.iskeyword(name) else name.replace("-", "_")
    return f"{folder}.{module}" if folder else module


def unknown_command(name: str) -> str:
    """What to say to a mistyped command: the nearest ones, or that a tape's name came first."""
    from difflib import get_close_matches

    if name.endswith((".tape", ".tape.zst")):
        return f"No such command '{name}'. To look at a tape: wiretape show {name}"
    near = get_close_matches(name.lower(), COMMANDS)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"No such command '{name}'.{hint}"


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Start with: wiretape demo",
)
@click.version_option(__version__, prog_name="wiretape")
def app() -> None:
    """Record what an LLM agent really sent over the wire, replay it exactly, and explain it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; every failure is one clear line on stderr and an exit code, never a traceback."""
    if sys.platform != "win32":  # its console is not a plain file
        open_streams()
    _tolerate_narrow_encodings()
    raise_limit()
    try:
        result = app.main(args=list(argv) if argv is not None else None, prog_name="wiretape", standalone_mode=False)
    except click.exceptions.Abort:
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        click.echo(_without_secrets(said.getvalue()), err=True, nl=False)
        return error.exit_code
    except PipeClosed:
        _silence_stdout()
        return EXIT_PIPE_CLOSED
    except Exception as error:
        return _failed(error)
    return result if isinstance(result, int) else 0


class PipeClosed(Exception):
    """The reader of our pipe went away (`wiretape show … | head`): no one is left to tell."""


def _failed(error: Exception) -> int:
    """Say what failed in one line, and give the exit code."""
    if os.environ.get("WIRETAPE_DEBUG", "0") not in ("", "0"):
        import traceback

        click.echo(_without_secrets("".join(traceback.format_exception(error))), err=True, nl=False)
        return error.exit_code if isinstance(error, WiretapeError) else EXIT_INTERNAL
    from wiretape.views.printable import visible

    if isinstance(error, WiretapeError):
        click.echo(f"wiretape: {visible(_without_secrets(str(error)))}", err=True)
        return error.exit_code
    if isinstance(error, OSError):
        click.echo(_without_secrets(f"wiretape: {error.filename or 'system'}: {error.strerror or error}"), err=True)
        return 2
    said = " ".join([f"{type(error).__name__}:", *_without_secrets(str(error)).split()]).removesuffix(":")
    click.echo(f"wiretape: internal error: {said} (WIRETAPE_DEBUG=1 shows the traceback)", err=True)
    return EXIT_INTERNAL


def _without_secrets(text: str) -> str:
    """What is wrong with a request, an option or a variable may be told with its value."""
    from wiretape.adapters.output import output

    return output().text(text)


def _is_closed_pipe(error: OSError) -> bool:
    # Windows reports a closed pipe as EINVAL, on no file of a name.
    windows = sys.platform == "win32"
    return isinstance(error, BrokenPipeError) or (windows and error.errno == errno.EINVAL and not error.filename)


def _silence_stdout() -> None:
    """Point stdout nowhere, so that the interpreter's last flush does not fail as well."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
    except (OSError, ValueError):  # stdout is no file (a test's buffer), or closed already
        return


def _tolerate_narrow_encodings() -> None:
    """A console that cannot print a character shows its escape; it never makes the command fail."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
