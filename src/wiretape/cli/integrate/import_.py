"""`wiretape import`: make a tape of recordings that other tools made."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import say
from wiretape.cli.editing import OUT_IS_OUTPUT
from wiretape.cli.integrate.format_choice import FormatChoice
from wiretape.cli.shared_options import force_option, json_option, note_option
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.adapters.importers.source import ImportedExchange, RefusedEntry

# Kept here, so that the help page costs no import; a test compares them with the importers.
FORMATS = ("auto", "vcr", "go-vcr", "ruby-vcr", "har", "nock", "wiremock", "mitm", "jsonl", "body")


def plugin_formats() -> Iterable[str]:
    from wiretape.adapters.importers.importing import plugins

    return plugins()


@click.command("import", context_settings=OUT_IS_OUTPUT)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "out", required=True, metavar="TAPE", type=click.Path(path_type=Path), help="The tape to write."
)
@click.option(
    "--format",
    "form",
    type=FormatChoice(FORMATS, plugin_formats),
    default="auto",
    help="Format of the files, if it is not detected; plug-ins add formats.",
)
@note_option
@click.option(
    "--max-size",
    metavar="SIZE",
    help="Allow a file to decode to this size (default: 64m, or 200 times its own size).",
)
@force_option()
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[Path, ...],
    out: Path,
    form: str,
    note: str | None,
    max_size: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Make a tape of recordings that other tools made.

    Reads cassettes of vcrpy, go-vcr and Ruby's VCR, HAR, recordings of nock, WireMock's mappings, mitmproxy's flow
    files, JSON Lines of {request, response}, and bare bodies of responses; a directory stands for the files in it.
    What cannot be taken is named, and the rest is imported. Secrets are removed as in recording.
    """
    from datetime import datetime

    from wiretape.adapters.importers.source import RefusedEntry
    from wiretape.adapters.importers.write_imported import write_imported
    from wiretape.adapters.settings import load_settings, redactor_of
    from wiretape.cli.editing import refuse_existing
    from wiretape.tape.format.codings import allow_size

    refuse_existing(out, force)
    allow_size(max_size)
    paths = list(_files(files))
    taken: list[ImportedExchange] = []
    refused: list[RefusedEntry] = []
    for outcome in _read(paths, form):
        if isinstance(outcome, RefusedEntry):
            refused.append(outcome)
        else:
            taken.append(outcome)
    if taken:
        redactor = redactor_of(load_settings(Path.cwd()))
        write_imported(out, taken, datetime.now(UTC), redactor, note)
    _report(out, len(paths), taken, refused, as_json)
    if not taken:
        raise UsageError(f"nothing could be taken, and {out} was not written; docs/importing.md says what can be read")


def _files(named: Sequence[Path]) -> Iterator[Path]:
    """Yield the files, and the files in the directories by name."""
    for path in named:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        else:
            yield path


def _read(paths: list[Path], form: str) -> Iterator[ImportedExchange | RefusedEntry]:
    """Import the files, with a progress line on a terminal."""
    from wiretape.adapters.importers.importing import import_files

    if not sys.stderr.isatty():
        yield from import_files(paths, form)
        return
    from wiretape.views.printable import one_line
    from wiretape.views.terminal import make_console

    seen = 0
    with make_console(stderr=True).status("") as status:
        for number, path in enumerate(paths, 1):
            for outcome in import_files([path], form):
                if seen % 25 == 0:
                    status.update(one_line(f"file {number} of {len(paths)}, exchange {seen + 1}: {path.name}"))
                seen += 1
                yield outcome


def _report(out: Path, files: int, taken: list[ImportedExchange], refused: list[RefusedEntry], as_json: bool) -> None:
    from wiretape.model.wording import plural
    from wiretape.views.printable import one_line

    if as_json:
        from wiretape.cli.tapes import print_json

        print_json(_as_json(out, files, taken, refused))
    where = f"written to {out}" if taken else "taken"
    say(f"{plural(len(taken), 'exchange')} of {plural(files, 'file')} {where}")
    if not refused:
        return
    say(f"{len(refused)} could not be taken:")
    by_reason: dict[str, list[RefusedEntry]] = {}
    for one in refused:
        by_reason.setdefault(one.reason, []).append(one)
    for reason, ones in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        print(f"  {len(ones)} x {one_line(reason)}", file=sys.stderr)
        for line in _places(ones):
            print(f"      {one_line(line)}", file=sys.stderr)


def _places(refused: list[RefusedEntry]) -> Iterator[str]:
    """Yield every file with its entries."""
    entries: dict[str, list[str]] = {}
    for one in refused:
        entries.setdefault(one.file, []).extend([] if one.entry is None else [str(one.entry)])
    for file, numbers in entries.items():
        yield f"{file} {'entry' if len(numbers) == 1 else 'entries'} {', '.join(numbers)}" if numbers else file


def _as_json(out: Path, files: int, taken: list[ImportedExchange], refused: list[RefusedEntry]) -> dict[str, object]:
    containers: dict[str, int] = {}
    for one in taken:
        containers[one.container] = containers.get(one.container, 0) + 1
    return {
        "tape": str(out) if taken else None,
        "files": files,
        "exchanges": len(taken),
        "containers": containers,
        "refused": [{"file": one.file, "entry": one.entry, "reason": one.reason} for one in refused],
    }
