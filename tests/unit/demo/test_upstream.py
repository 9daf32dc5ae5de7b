"""The scripted upstream as a command: what the program that it runs finds in its environment."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from wiretape.demo import answers
from wiretape.demo.upstream import main, sse

TELL = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"


def test_its_program_gets_the_base_url_and_a_dummy_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-mine")
    told = tmp_path / "environ.json"
    assert main(["--", sys.executable, "-c", TELL, str(told)]) == 0
    environ = json.loads(told.read_text())
    assert environ["OPENAI_BASE_URL"].startswith("http://127.0.0.1:")
    assert (environ["OPENAI_API_KEY"], environ["DEEPSEEK_API_KEY"]) == ("none", "sk-mine")


def events(answer: dict[str, Any]) -> list[dict[str, Any]]:
    lines = b"".join(sse(answer)).decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def joined(found: list[dict[str, Any]], member: str) -> str:
    return "".join(event["choices"][0]["delta"].get(member) or "" for event in found)


def test_chat_deltas_join_to_the_message() -> None:
    found = events(answers.INTRODUCTION)
    message = answers.INTRODUCTION["choices"][0]["message"]
    assert joined(found, "content") == message["content"]
    assert joined(found, "reasoning_content") == message["reasoning_content"]


def test_chat_finish_and_usage_come_with_the_last_chunk_only() -> None:
    found = events(answers.INTRODUCTION)
    assert [event["choices"][0]["finish_reason"] for event in found if event["usage"]] == ["stop"]
    assert found[-1]["usage"] == answers.INTRODUCTION["usage"]


def test_chat_ends_with_done() -> None:
    assert list(sse(answers.INTRODUCTION))[-1] == b"data: [DONE]\n\n"


def test_chat_tool_calls_carry_id_and_name_once() -> None:
    calls = [
        call for event in events(answers.CLOCK_ASKS_TIME) for call in event["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert [call.get("id") for call in calls if "id" in call] == ["call_00_gtvp7oMzKmS1UhTELmlR8838"]
    assert "".join(call["function"]["arguments"] for call in calls) == '{"timezone": "Asia/Shanghai"}'


def test_responses_items_are_opened_filled_and_closed() -> None:
    found = events(answers.SUPERVISOR_DELEGATES)
    assert [event["item"] for event in found if event["type"] == "response.output_item.done"] == (
        answers.SUPERVISOR_DELEGATES["output"]
    )
    arguments = [event["delta"] for event in found if event["type"] == "response.function_call_arguments.delta"]
    assert "".join(arguments) == answers.SUPERVISOR_DELEGATES["output"][1]["arguments"]
    assert found[-1] == {
        "type": "response.completed",
        "sequence_number": len(found) - 1,
        "response": answers.SUPERVISOR_DELEGATES,
    }
