"""The documentation lists every command, name and topic, as they are."""

from __future__ import annotations

from tests.support.debugger_docs import PAGE, page
from tests.support.debugging import debugger

from wiretape.debug.commands.registry import COMMANDS, GROUPS
from wiretape.debug.commands.topics import TOPICS
from wiretape.debug.expression.names import NAMES


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.support.debugger_docs rewrites it"


def test_every_command_name_and_topic_is_documented() -> None:
    text = page()
    assert not [c.name for c in COMMANDS.values() if f"**`{c.name}" not in text]
    assert not [alias for c in COMMANDS.values() for alias in c.aliases if f"`{alias}`" not in text]
    assert not [name for name in NAMES if f"| `{name}` |" not in text]
    assert not [topic for topic in TOPICS if f"`{topic}`" not in text]


def test_every_command_has_a_group_a_help_line_and_a_unique_name() -> None:
    words = [word for c in COMMANDS.values() for word in (c.name, *c.aliases)]
    assert len(words) == len(set(words))
    assert all(c.group in GROUPS and c.help and not c.help.endswith(".") for c in COMMANDS.values())


def test_every_example_works_somewhere() -> None:
    elsewhere = ("other.tape", "refund", "goto turn 2", "a+b", "disk")  # what the capture does not have
    living = "living"  # commands for a running program have separate transcripts
    for command in (c for c in COMMANDS.values() if not c.terminal and c.group != living):
        for example in command.examples:
            if not any(word in example for word in elsewhere):
                errors = [error for place in ("goto 2", "goto 4") if (error := _done(place, example)) is not None]
                assert len(errors) < 2, f"{example}: {errors}"


def _done(place: str, example: str) -> str | None:
    session = debugger()
    for line in (place, *(["up"] if example == "down" else []), "note one", "checkpoint", "break 1", "list"):
        session.execute(line)
    return session.execute(example).error
