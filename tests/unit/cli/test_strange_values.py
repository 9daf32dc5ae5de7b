"""Numbers, characters and nesting that no recorder writes are reported by every command that reads a tape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.torture.mutations import COMMANDS, argv_of, read_by

HEADER = {"wiretape": 1, "started": "2026-03-01T12:00:00Z", "recorder": "w"}
CASES = Path(__file__).parents[4] / "shared" / "cases" / "reliability"


def exchange(at: Any = 1, status: Any = 200, body: Any = None, headers_at: Any = 2, number: Any = 1) -> list[Any]:
    asked = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
    request = {"method": "POST", "url": "https://api.openai.com/v1/chat/completions", "headers": {}}
    said = {"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}], "usage": {}}
    response = {"status": status, "headers": {}, "headers_at": headers_at, "body": body or {"json": said}}
    return [
        {"exchange": number, "at": at, "request": request | {"body": {"json": asked}}},
        {"exchange": number, "at": at, "response": response, "ended": "complete"},
    ]


def nested(depth: int, text: bool) -> Any:
    deep = "[" * depth + "]" * depth
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": deep}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    value = {"choices": [{"index": 0, "message": message}], "usage": {"prompt_tokens": 1}}
    return {"text": json.dumps(value).replace(json.dumps(deep), deep)} if text else {"json": value}


def stream(usage: str) -> Any:
    data = '{"choices": [{"index": 0, "delta": {"content": "x"}}], "usage": {"prompt_tokens": ' + usage + "}}"
    return {"events": [f"data: {data}\n\n", "data: [DONE]\n\n"], "ms": "1 9999999999999"}


TAPES: dict[str, list[Any]] = {
    "at of 64 bits": exchange(at=2**63),
    "at of 400 digits": exchange(at=10**400),
    "at of 4,000 digits": exchange(at=10**4000),
    "at that is a large float": exchange(at=1e300),
    "negative at": exchange(at=-(2**62)),
    "largest at": exchange(at=10**13, headers_at=10**13),
    "huge headers_at": exchange(headers_at=2**64),
    "huge status": exchange(status=10**30),
    "huge exchange number": exchange(number=10**18),
    "started in the year 9999": exchange(),
    "usage of 64 bits": exchange(body={"json": {"choices": [], "usage": {"prompt_tokens": 2**64 - 1}}}),
    "usage of 400 digits": exchange(body={"text": '{"choices": [], "usage": {"prompt_tokens": ' + "9" * 400 + "}}"}),
    "usage of 400 digits in a stream": exchange(body=stream("9" * 400)),
    "infinite usage in a stream": exchange(body=stream("1e999")),
    "lone surrogate": exchange(body={"text": "\ud800"}),
    "lone surrogate in a member": exchange(body={"json": {"\udfff": "\ud800"}}),
    "lone surrogate in JSON text": exchange(body={"text": '{"choices": [{"message": {"content": "\\ud800"}}]}'}),
    "nesting of 200": exchange(body=nested(200, False)),
    "nested arguments of 900": exchange(body=nested(900, False)),
    "nested text of 900": exchange(body=nested(900, True)),
    "nested arguments of 100,000": exchange(body=nested(100_000, False)),
}
WRONG_HEADERS = {"started in the year 9999": HEADER | {"started": "9999-12-31T23:59:59Z"}}


@pytest.mark.parametrize("name", TAPES)
def test_strange_values_give_an_error_or_a_result(name: str, tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    documents = [WRONG_HEADERS.get(name, HEADER), *TAPES[name]]
    text = "\n".join(json.dumps(document, indent=2) + "\n" for document in documents)
    problems = read_by_all(tape, text.encode())
    assert problems == []


@pytest.mark.parametrize("where", ["value", "member"])
def test_a_body_nested_900_deep_gives_an_error_or_a_result(where: str, tmp_path: Path) -> None:
    deep = "[" * 900 + "]" * 900 if where == "value" else '{"a":' * 900 + "1" + "}" * 900
    text = "\n".join(json.dumps(document, indent=2) + "\n" for document in [HEADER, *exchange(body={"json": "DEEP"})])
    assert read_by_all(tmp_path / "a.tape", text.replace('"DEEP"', deep).encode()) == []


@pytest.mark.slow
@pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not there")
@pytest.mark.parametrize("folder", ["fuzz-found", "nested-900"])
def test_tapes_that_gave_internal_errors(folder: str, tmp_path: Path) -> None:
    for path in sorted((CASES / folder).glob("*.tape")):
        beside = path.with_name(path.name + ".journal")
        journal = beside.read_bytes() if beside.exists() else b""
        assert read_by_all(tmp_path / path.name, path.read_bytes(), journal) == []


def read_by_all(tape: Path, text: bytes, journal: bytes = b"") -> list[str]:
    """What is wrong with how the commands end that read a tape."""
    original = tape.with_name("original.tape")
    problems = []
    for words in COMMANDS:
        tape.write_bytes(text)  # again: `redact` writes in place
        original.write_bytes(text)
        if journal:
            tape.with_name(tape.name + ".journal").write_bytes(journal)
        if (problem := read_by(argv_of(words, tape, original, tape.parent))) is not None:
            problems.append(f"{words}: {problem}")
    return problems
