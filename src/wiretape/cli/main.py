"""The command `wiretape`: lists the commands, imports the one that is used, and turns errors into exit codes.

An error is one clear line on stderr; `WIRETAPE_DEBUG=1` prints the traceback instead.
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
from wiretape.adapters.output import output, say
from wiretape.cli.streams import open_streams
from wiretape.cli.tapes import code_of
from wiretape.errors import WiretapeError

# Group -> command -> one line for the overview. `module_of` names the module that defines its `command`.
GROUPS: dict[str, dict[str, str]] = {
    "Run": {
        "record": "Run a program and record its requests to models.",
        "replay": "Run a program against a tape, offline.",
        "rerun": "Play a tape's scheduler without its program, offline or live.",
        "fork": "Change one thing in a recorded run, and continue from there live.",
        "demo": "Record, replay and explain a small agent, from start to end.",
    },
    "Inspect": {
        "ls": "List tapes.",
        "show": "Show a tape, or one of its calls.",
        "stats": "Count calls, tokens and cache hits for each user turn.",
        "cache": "Explain what the prompt cache served, and why not more.",
        "tools": "Show what each tool costs in tokens.",
        "debug": "Step through a tape forward and back, with breakpoints.",
    },
    "Compare": {
        "diff": "Compare two runs, and show where they diverge.",
        "check": "Check tapes against budgets, and against an older run.",
        "lint": "Find faults in an agent's loop.",
        "verify": "Run a program live, and report whether its tape has drifted.",
    },
    "Edit": {
        "cut": "Write part of a tape as a new tape.",
        "merge": "Write several tapes as one.",
        "merge-driver": "Merge tapes of two git branches (git runs this).",
        "redact": "Remove secrets from an existing tape.",
    },
    "Integrate": {
        "import": "Make a tape from recordings of other tools.",
        "export": "Write a tape as HAR.",
        "doctor": "Check what recording and replay need; explain an empty tape.",
        "schema": "Print the JSON Schema of a tape's documents.",
    },
}
COMMANDS: dict[str, str] = {name: line for group in GROUPS.values() for name, line in group.items()}

EXIT_INTERNAL = 70  # sysexits' EX_SOFTWARE: an internal error, which must not look like the program's exit code
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
        # `wiretape help` and `wiretape help record`, as in many other tools
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # click suggests only commands that it has loaded, and these are loaded lazily.
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(unknown_command(name))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = code_of(ctx, super().invoke(ctx))
            sys.stdout.flush()  # a closed pipe can still be handled here
        except OSError as error:
            if _is_closed_pipe(error):
                raise PipeClosed from error  # click would exit with 1, as if the command had failed
            raise
        except click.exceptions.Exit as error:
            raise click.exceptions.Exit(code_of(ctx, error.exit_code)) from None
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, commands in GROUPS.items():
            with formatter.section(f"{group} commands"):
                formatter.write_dl(list(commands.items()))


def module_of(name: str) -> str:
    """Return the module of a command, below wiretape.cli: `import` is `integrate.import_`."""
    group = next(group for group, commands in GROUPS.items() if name in commands)
    module = f"{name}_" if keyword.iskeyword(name) else name.replace("-", "_")
    return f"{'debug' if name == 'debug' else group.lower()}.{module}"


def unknown_command(name: str) -> str:
    """Return the error for an unknown command: it suggests near ones, or `show` for a tape."""
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
    """Record the requests of an LLM agent on the wire, replay them exactly, and explain them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. An error is one clear line on stderr and an exit code."""
    if sys.platform != "win32":  # its console is not a plain file
        open_streams()
    _tolerate_narrow_encodings()
    raise_limit()
    try:
        result = app.main(args=list(argv) if argv is not None else None, prog_name="wiretape", standalone_mode=False)
    except click.exceptions.Abort:
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        click.echo(_without_secrets(message.getvalue()), err=True, nl=False)
        return error.exit_code
    except PipeClosed:
        _silence_stdout()
        return EXIT_PIPE_CLOSED
    except Exception as error:
        return _failed(error)
    return result if isinstance(result, int) else 0


class PipeClosed(Exception):
    """The reader of stdout has closed the pipe, as in `wiretape show … | head`."""


def _failed(error: Exception) -> int:
    """Print the error in one line, and return the exit code."""
    if os.environ.get("WIRETAPE_DEBUG", "0") not in ("", "0"):
        import traceback

        click.echo(_without_secrets("".join(traceback.format_exception(error))), err=True, nl=False)
        return error.exit_code if isinstance(error, WiretapeError) else EXIT_INTERNAL
    from wiretape.views.printable import visible

    if isinstance(error, WiretapeError):
        say(visible(_without_secrets(str(error))))
        return error.exit_code
    if isinstance(error, OSError):
        say(f"{error.filename or 'system'}: {error.strerror or error}")
        return 2
    text = " ".join([f"{type(error).__name__}:", *str(error).split()]).removesuffix(":")
    say(f"internal error: {text} (WIRETAPE_DEBUG=1 shows the traceback)")
    return EXIT_INTERNAL


def _without_secrets(text: str) -> str:
    """Redact an error: it may quote the value of a request, an option or a variable."""
    return output().text(text)


def _is_closed_pipe(error: OSError) -> bool:
    # Windows reports a closed pipe as EINVAL, without a file name.
    windows = sys.platform == "win32"
    return isinstance(error, BrokenPipeError) or (windows and error.errno == errno.EINVAL and not error.filename)


def _silence_stdout() -> None:
    """Point stdout at the null device, so that the interpreter's last flush does not fail as well."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
    except (OSError, ValueError):  # stdout is a test's buffer, or closed already
        return


def _tolerate_narrow_encodings() -> None:
    """Print escapes for characters that the console cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
