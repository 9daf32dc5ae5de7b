"""The models are the specification: what the recorder writes must satisfy them, and their JSON Schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from pydantic import TypeAdapter

from wiretape.cli.main import app
from wiretape.tape.format.documents import BodyShape, Header, json_schema, parse_document
from wiretape.tape.reading.splitting import split_documents

V1 = Path(__file__).parents[3] / "tapes" / "v1" / "shapes.tape"


def written() -> list[Any]:
    return [piece.value for piece in split_documents(V1.read_bytes(), V1)[0]]


def test_every_document_of_a_tape_satisfies_the_models() -> None:
    header, *others = written()
    assert Header.model_validate(header).wiretape == 1
    kinds = {type(parse_document(document)).__name__ for document in others}
    assert kinds == {"RequestDocument", "ResponseDocument", "MessageDocument", "EndedDocument", "IncompleteDocument"}


def test_every_document_of_a_tape_satisfies_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    for document in written():
        validator.validate(document)


def test_every_body_satisfies_its_model() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(BodyShape)
    parts = [d.get("request") or d.get("response") or d.get("message") or {} for d in written()]
    shapes = {type(adapter.validate_python(part["body"])).__name__ for part in parts if "body" in part}
    assert shapes == {"JsonShape", "LikeShape", "EventsShape", "FramesShape", "TextShape", "Base64Shape"}


@pytest.mark.parametrize(
    "document",
    [
        {"exchange": 1, "at": 0, "request": {"method": "GET", "url": "u", "headers": {}, "body": {"jsn": 1}}},
        {"exchange": 1, "at": 0, "ended": "somehow"},
        {"exchange": 0, "at": 0, "ended": "complete"},
        {"exchange": 1, "at": 0, "ended": "complete", "extra": 1},
    ],
)
def test_the_schema_refuses_what_is_no_document(document: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json_schema())


def test_the_command_prints_the_schema() -> None:
    result = CliRunner().invoke(app, ["schema"])
    assert result.exit_code == 0
    printed = json.loads(result.output)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed == json_schema()


def test_the_examples_in_the_documentation_stand_on_a_real_tape() -> None:
    page = (V1.parent.parent.parent.parent / "docs" / "tape-format.md").read_text(encoding="utf-8")
    parts: list[Any] = []
    for document in written():
        _collect(document, parts)
    examples = [example for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL) for example in _documents(block)]
    assert len(examples) == 11
    assert [example for example in examples if example not in parts] == []


def _collect(value: Any, into: list[Any]) -> None:
    into.append(value)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _collect(part, into)


def _documents(block: str) -> list[Any]:
    """The JSON documents in an example; BODY stands for any."""
    if "BODY" in block:
        return []
    found, at = [], 0
    while at < len(block.rstrip()):
        value, at = json.JSONDecoder().raw_decode(block, at)
        found.append(value)
        at += len(block) - at - len(block[at:].lstrip())
    return found
