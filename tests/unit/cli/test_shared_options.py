"""One option name has one meaning and one help text in all commands."""

from __future__ import annotations

import re
from collections import defaultdict

import click

from wiretape.cli.main import COMMANDS, app

# What a command writes, compares or calls live differs from command to command.
DIFFER = {"--output", "--all", "--tolerance", "--live", "--format"}


def options() -> list[tuple[str, click.Option]]:
    context = click.Context(app)
    found = ((name, app.get_command(context, name)) for name in COMMANDS)
    return [(n, p) for n, command in found if command for p in command.params if isinstance(p, click.Option)]


def test_an_option_has_the_same_help_in_every_command() -> None:
    helps: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for command, option in options():
        text = re.sub(r"^With [^:]+: ", "", option.help or "")
        helps[option.opts[-1]][text].append(command)
    assert {name: dict(texts) for name, texts in helps.items() if len(texts) > 1 and name not in DIFFER} == {}


def test_help_texts_are_one_sentence() -> None:
    for command, option in options():
        text = option.help or ""
        assert text[:1].isupper(), f"{command} {option.opts}: {text}"
        assert text.endswith("."), f"{command} {option.opts}: {text}"
        assert "\n" not in text
