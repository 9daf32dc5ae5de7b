"""`wiretape merge-driver`: merges the tapes of two git branches; git runs it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import say
from wiretape.errors import TapeError, UsageError

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape

ATTRIBUTES = ("*.tape merge=wiretape -text", "*.tape.zst merge=wiretape -text")


@click.command("merge-driver")
@click.argument("base", metavar="[%O", required=False, type=click.Path(path_type=Path))
@click.argument("ours", metavar="%A", required=False, type=click.Path(path_type=Path))
@click.argument("theirs", metavar="%B", required=False, type=click.Path(path_type=Path))
@click.argument("name", metavar="%P]", required=False)
@click.option("--install", is_flag=True, help="Set up this git repository, so that it merges tapes with wiretape.")
def command(base: Path | None, ours: Path | None, theirs: Path | None, name: str | None, install: bool) -> None:
    """Merge the tapes of two git branches: git runs this.

    Calls that the branches recorded with --append are both kept, each once. If both changed the same exchange, the
    tape of the current branch is unchanged, and git reports a conflict. Run wiretape merge-driver --install once in
    every clone, and commit the .gitattributes that it writes.
    """
    if install:
        _install()
    elif base is None or ours is None or theirs is None or name is None:
        raise UsageError("git runs this command; to set it up in a repository: wiretape merge-driver --install")
    else:
        _merge(base, ours, theirs, name)


def _merge(base: Path, ours: Path, theirs: Path, name: str) -> None:
    """Write the merged tape to `ours`, or leave `ours` unchanged and exit with 1."""
    from wiretape.adapters.settings import load_settings, redactor_of
    from wiretape.tape.atomic import rewrite
    from wiretape.tape.editing.branches import BranchConflict, merge_branches

    redactor = redactor_of(load_settings(Path.cwd()))
    with TemporaryDirectory(prefix="wiretape-") as directory:
        # The files that git makes have names without a suffix, and none of them has a journal.
        copies = [Path(directory, side, Path(name).name) for side in ("base", "ours", "theirs", "merged")]
        for copy, source in zip(copies, (base, ours, theirs), strict=False):
            copy.parent.mkdir()
            shutil.copyfile(source, copy)
        try:
            ancestor, mine, other = (_tape(copy) for copy in copies[:3])
            if mine is None or other is None:
                raise BranchConflict("one branch has an empty file in place of the tape")
            copies[3].parent.mkdir()
            merge_branches(ancestor, mine, other, copies[3], redactor)
        except TapeError as error:
            reason = str(error).partition("\n")[0].replace(f"{directory}/", "")
            raise BranchConflict(f"{name}: {reason}\n{_choose(name)}") from None
        except BranchConflict as error:
            raise BranchConflict(f"{name}: {error}\n{_choose(name)}") from None
        rewrite(ours, [copies[3].read_bytes()])


def _tape(path: Path) -> Tape | None:
    """The tape in a file; None for an empty file, which stands for an ancestor that does not exist."""
    from wiretape.tape.reading.reader import read_tape

    return read_tape(path) if path.stat().st_size else None


def _choose(name: str) -> str:
    quoted = shlex.quote(name)
    return f"  choose one: git checkout --ours {quoted} (or --theirs), then git add {quoted}"


def _install() -> None:
    """Tell git about the driver: the command in this clone's configuration, the files in .gitattributes."""
    root = Path(_git("rev-parse", "--show-toplevel"))
    _git("config", "merge.wiretape.name", "merge tapes exchange by exchange")
    _git("config", "merge.wiretape.driver", f"{_this_command()} merge-driver %O %A %B %P")
    file = root / ".gitattributes"
    there = file.read_text(encoding="utf-8") if file.exists() else ""
    missing = [line for line in ATTRIBUTES if line not in there.splitlines()]
    if missing:
        separator = "" if not there or there.endswith("\n") else "\n"
        with file.open("a", encoding="utf-8", newline="\n") as out:
            out.write(separator + "".join(f"{line}\n" for line in missing))
    say(f"git merges the tapes in {root} with wiretape now")
    if missing:
        print(f"  commit {file.name}; in every other clone: wiretape merge-driver --install", file=sys.stderr)


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise UsageError("git is not installed") from None
    except subprocess.CalledProcessError as error:
        raise UsageError(f"git {arguments[0]} failed: {error.stderr.strip()}") from None
    return done.stdout.strip()


def _this_command() -> str:
    """The command as git can run it, also where this environment is not active."""
    beside = Path(sys.executable).with_name("wiretape")
    return shlex.quote(str(beside)) if beside.exists() else "wiretape"
