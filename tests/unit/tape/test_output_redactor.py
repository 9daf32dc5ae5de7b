"""What is printed of command lines, variables and bodies, and how an edited value gets its secrets back."""

from __future__ import annotations

from typing import Any

import pytest

from wiretape.model.http import Headers
from wiretape.tape.output_redactor import OutputRedactor

KEY = "Zx9QpL33mmW8kd2Q"


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        (["--api-key", KEY], ["--api-key", "[redacted:api-key:1]"]),
        ([f"--api-key={KEY}"], ["--api-key=[redacted:api-key:1]"]),
        ([f"DB_PASSWORD={KEY}"], ["DB_PASSWORD=[redacted:db_password:1]"]),
        (["-H", f"Authorization: Bearer {KEY}"], ["-H", "Authorization: Bearer [redacted:authorization:1]"]),
        ([f"https://h/x?token={KEY}&a=b"], ["https://h/x?token=[redacted:token:1]&a=b"]),
        ([f"OPENAI_BASE_URL=https://me:{KEY}@h/v1"], ["OPENAI_BASE_URL=https://me:[redacted:url-password:1]@h/v1"]),
        (["--api-key", "--verbose", "agent.py"], ["--api-key", "--verbose", "agent.py"]),
        (["-m", "agent", "--retries=3", "a=b", "--", "x = y"], ["-m", "agent", "--retries=3", "a=b", "--", "x = y"]),
    ],
)
def test_a_command_line_is_printed_without_its_secrets(word: list[str], shown: list[str]) -> None:
    assert OutputRedactor().command(["agent", *word]) == ["agent", *shown]


def test_the_credentials_of_the_environment_are_known() -> None:
    output = OutputRedactor(environ={"SERVICE_TOKEN": KEY, "HOME": "/home/zaphod-beeblebrox-2"})
    assert output.text(f"it is {KEY}") == "it is [redacted:service_token:1]"
    assert output.text("/home/zaphod-beeblebrox-2") == "/home/zaphod-beeblebrox-2"


def test_the_users_patterns_count() -> None:
    assert OutputRedactor(["ACME-[0-9]+"]).text("number ACME-12 it is") == "number [redacted:pattern:1] it is"


def test_headers_are_learned_once_and_known_from_then_on() -> None:
    output = OutputRedactor()
    output.learn_request(Headers([("x-api-key", KEY)]), "https://h/")
    assert KEY not in output.text(f"<{KEY}>")
    for n in range(1000):  # more than are remembered as lines
        output.learn_request(Headers([("x-number", str(n))]), "https://h/")
    assert KEY not in output.text(f"<{KEY}>")


@pytest.mark.parametrize(
    "value",
    [
        {"password": KEY, "a": [1, {"text": f"sk-proj-{KEY[::-1] * 2} and postgres://me:{KEY}@h/x"}]},
        {"messages": [{"role": "user", "content": "nothing"}]},
        {"text": f"postgres://a:{KEY}@h/ postgres://b:{KEY[::-1]}@h/"},
    ],
)
def test_a_shown_value_is_restored(value: Any) -> None:
    output = OutputRedactor()
    shown = output.shown(value)
    assert KEY not in str(shown)
    assert output.restored(shown) == value


def test_an_edited_value_keeps_its_secrets_where_their_placeholders_stand() -> None:
    output = OutputRedactor()
    shown = output.shown({"content": f"log in as me with postgres://me:{KEY}@h/x"})
    shown["content"] = shown["content"].replace("log in as me", "please log in")
    assert output.restored(shown) == {"content": f"please log in with postgres://me:{KEY}@h/x"}


def test_a_value_nested_too_deeply_to_recurse_is_redacted() -> None:
    value: Any = {"password": KEY}
    for _ in range(5000):
        value = {"a": [value]}
    made: Any = OutputRedactor().value(value)
    for _ in range(5000):
        (made,) = made["a"]
    assert made == {"password": "[redacted:password:1]"}
