"""`wiretape doctor`: checks this machine, a program, or a tape without model calls."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import output, typed
from wiretape.cli.shared_options import json_option

if TYPE_CHECKING:
    from wiretape.views.doctor import DoctorReport

BROKEN = 1


@click.command("doctor", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
@json_option
@click.option("--remove-ca", is_flag=True, help="Remove the recorder's private certificate authority.")
@click.argument("words", metavar="[TAPE | CMD...]", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], as_json: bool, remove_ca: bool) -> None:
    """Check what recording and replay need on this machine.

    With CMD, show the variables that would be set for that program, and why. With a TAPE, explain missing model calls:
    the hosts that passed unrecorded, and the exchanges that no wire format recognises.

    Exit code 1: a check failed.
    """
    if remove_ca:
        from wiretape.adapters.doctor.checks import removed_authority

        for line in removed_authority(os.environ):
            click.echo(line)
        return
    report = _printable(_tape(words[0]) if len(words) == 1 and _is_tape(words[0]) else _machine(words))
    if as_json:
        from wiretape.cli.tapes import print_json

        print_json(report.model_dump(mode="json"))
    else:
        from wiretape.views.doctor import doctor_view
        from wiretape.views.terminal import make_console

        make_console().print(doctor_view(report))
    ctx.exit(BROKEN if report.broken else 0)


def _printable(report: DoctorReport) -> DoctorReport:
    """Remove secrets of the environment from the report, such as a password in a base URL."""
    text = output().text
    checks = (
        check.model_copy(update={"said": text(check.said), "next": check.next and text(check.next)})
        for check in report.checks
    )
    sets = (one.model_copy(update={"value": str(output().argument(one.name, one.value))}) for one in report.sets)
    notes = tuple(text(note) for note in report.notes)
    return report.model_copy(update={"checks": tuple(checks), "sets": tuple(sets), "notes": notes})


def _is_tape(word: str) -> bool:
    return word.endswith((".tape", ".tape.zst"))


def _tape(path: str) -> DoctorReport:
    from wiretape.adapters.doctor.tape_checks import tape_checks
    from wiretape.cli.tapes import link, read
    from wiretape.views.doctor import DoctorReport

    opened = link(path, read(path, show=True))
    return DoctorReport(checks=tuple(tape_checks(path, opened.tape, opened.run)))


def _machine(argv: tuple[str, ...]) -> DoctorReport:
    from wiretape.adapters.doctor.checks import library_check, machine_checks
    from wiretape.views.doctor import DoctorReport, WouldSet

    checks = list(machine_checks(os.environ, Path.cwd()))
    if not argv:
        return DoctorReport(checks=(*checks, library_check()))
    from wiretape.adapters.doctor.program_checks import program_checks, would_set

    checks += program_checks(argv, os.environ, Path.cwd())
    settings, notes = would_set(argv, os.environ, Path.cwd())
    sets = tuple(WouldSet(name=one.name, value=one.value, why=one.why) for one in settings)
    return DoctorReport(checks=tuple(checks), program=typed(argv), sets=sets, notes=notes)
