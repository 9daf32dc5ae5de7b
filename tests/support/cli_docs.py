"""Writes docs/cli.md from the help pages: `python -m tests.support.cli_docs`."""

from __future__ import annotations

from pathlib import Path

import click

from wiretape.cli.main import COMMANDS, app

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"
WIDTH = 80
INTRODUCTION = """\
# The command line

These are the pages that `wiretape --help` and `wiretape COMMAND --help` print. They are generated:
`python -m tests.support.cli_docs` rewrites this file.

Results go to stdout, progress and notices to stderr. In a pipe, output has no colour and 80 columns;
`COLUMNS`, `NO_COLOR` and `FORCE_COLOR` are honoured.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | `doctor`: a check failed; `lint`: findings of `--fail-on`; `check`: a budget is exceeded; `diff`: runs differ |
| 1 | `show`, `ls`, `debug`, `doctor`: the tape is damaged, and the rest of it was shown |
| 2 | the command failed: wrong usage, a file that is not a tape, a port in use |
| 2 | a tape is damaged, and `--partial` was not given |
| 3 | `replay`: a live request was missed |
| 4 | `record`, `verify`, `fork`, `rerun -o`, `debug`: the new tape is incomplete (disk full, tape removed) |
| 70 | a fault of wiretape's own; `WIRETAPE_DEBUG=1` shows the traceback |
| 130 | interrupted |
| 141 | the reader of the output closed it |

`record` and `replay` pass on the exit code of the program that they run: 126 when it cannot be executed, 127 when
it is not found. If that code is 0, 3 and 4 take its place. A closed or broken stderr changes no exit code.
"""


def commands() -> dict[str, click.Command]:
    """Every command of the overview, by name."""
    context = click.Context(app, info_name="wiretape")
    found = {name: app.get_command(context, name) for name in COMMANDS}
    return {name: command for name, command in found.items() if command is not None}


def help_page(command: click.Command, name: str) -> str:
    """What `--help` prints, 80 columns wide, whatever the terminal."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    context.help_option_names = ["-h", "--help"]
    return command.get_help(context).strip()


def page() -> str:
    """The whole of docs/cli.md."""
    parts = [INTRODUCTION, _section("wiretape", help_page(app, "wiretape"))]
    parts += [
        _section(f"wiretape {name}", help_page(command, f"wiretape {name}")) for name, command in commands().items()
    ]
    return "\n".join(parts)


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n```text\n{text}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
