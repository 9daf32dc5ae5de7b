from __future__ import annotations

import pytest
from tests.support.calls import assistant, result, user

from wiretape.model.call import Message, Text
from wiretape.runs.user_text import (
    after_answer,
    answer_text,
    is_result_as_text,
    last_words,
    taken_apart,
    user_words,
    words,
)


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("hi", "hi"),
        ("<system-reminder>\nbe brief\n</system-reminder>\nhi", "hi"),
        ("<environment_context><cwd>/x</cwd></environment_context>", ""),
        ("<task-notification>done</task-notification><system-reminder>x</system-reminder>", ""),
        ("# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>x</INSTRUCTIONS>", ""),
        ("Current runtime context. This snapshot supersedes earlier runtime-context snapshots.", ""),
        ("<b>bold</b> words stay", "<b>bold</b> words stay"),
        ("an open <system-reminder> stays", "an open <system-reminder> stays"),
    ],
)
def test_text_of_a_harness_is_not_the_users_text(text: str, own: str) -> None:
    assert words(text) == own


def test_only_user_messages_have_users_text() -> None:
    assert user_words(user("hi")) == "hi"
    assert user_words(assistant("hi")) == ""
    assert user_words(result("hi")) == ""
    assert user_words(Message("user", (Text("hi"), Text("there")))) == "hi\nthere"


def test_an_observation_is_a_result_as_text() -> None:
    assert is_result_as_text(user("Observation:\n42"))
    assert user_words(user("Observation:\n42")) == ""
    assert not is_result_as_text(user("Observations are hard"))


def test_the_last_words_and_what_comes_after_the_answer() -> None:
    messages = (user("a"), assistant("b"), user("c"), result("r"))
    assert last_words(messages) == "c"
    assert after_answer(messages) == 2
    assert after_answer(messages[:1]) == 0
    assert answer_text(messages) == "b"
    assert answer_text(messages[:1]) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hi ", ["hi "]),
        ("<b>bold</b> ", ["<b>bold</b> "]),
        (
            "<task-notification>a</task-notification>\n\n<task-notification>b</task-notification>\n",
            ["<task-notification>a</task-notification>", "<task-notification>b</task-notification>"],
        ),
        ("hi\n<system-reminder>x</system-reminder> you", ["hi", "<system-reminder>x</system-reminder>", "you"]),
        ("<task-notification>a <system-reminder>", ["<task-notification>a <system-reminder>"]),
    ],
)
def test_a_text_is_split_at_inserted_parts(text: str, parts: list[str]) -> None:
    assert taken_apart(text) == parts
