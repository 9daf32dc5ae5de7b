from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.calls import asks, assistant, make_call, tools, user
from tests.support.linting import found

from wiretape.analyze.lint.schemas import Schemas
from wiretape.model.call import Control, Message, ToolCall, ToolSpec

HI = user("what is new?")
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
    "required": ["city"],
    "additionalProperties": False,
}


def spec(schema: dict[str, Any], name: str = "weather") -> ToolSpec:
    return ToolSpec(name, None, schema, "function", {"name": name, "parameters": schema})


def misfits(schema: dict[str, Any], value: Any) -> list[tuple[str, str, str, str]]:
    return [(one.path, one.problem, one.value, one.wanted) for one in Schemas().misfits(spec(schema), value)]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ('{"city": "Par', "not JSON (unexpected end of data: line 1 column 14 (char 13))"),
        ("[1]", "a list, not a JSON object"),
        ('"Paris"', "a string, not a JSON object"),
        ("null", "null, not a JSON object"),
        ("7", "a number, not a JSON object"),
    ],
)
def test_arguments_that_are_no_json_object(arguments: str, wrong: str) -> None:
    [finding] = found("WT003", make_call(1, [HI], assistant(asks("weather", arguments))))
    assert (finding.severity, finding.path) == ("error", "answer.tool_calls[0].arguments")
    assert finding.text == f"the arguments of weather are {wrong}"
    assert finding.values == {"arguments": arguments}


def test_arguments_cut_at_the_length_limit_say_so() -> None:
    call = make_call(1, [HI], assistant(asks("weather", '{"city": "Par')))
    assert call.response is not None
    call = replace(call, response=replace(call.response, finish="length"))
    assert found("WT003", call)[0].text.endswith("; the answer was cut at its length limit")


def test_empty_arguments_free_text_and_cut_streams_are_no_findings() -> None:
    assert found("WT003", make_call(1, [HI], assistant(asks("now", "")))) == []
    assert found("WT003", make_call(1, [HI], assistant(ToolCall("1", "shell", "ls -l", "custom")))) == []
    assert found("WT003", make_call(1, [HI], assistant(asks("weather", '{"ci')), complete=False)) == []


def test_a_misfit_names_the_place_the_value_and_what_the_schema_wants() -> None:
    ask = assistant(asks("weather", '{"city": "Paris", "days": "three"}'))
    [finding] = found("WT004", make_call(1, [HI], ask, offers=[spec(WEATHER)]))
    assert finding.path == "answer.tool_calls[0].arguments.days"
    assert finding.text == "the arguments of weather do not fit its schema: it must be integer"
    assert finding.values == {"argument": '"three"', "schema": 'type: "integer"'}


def test_missing_and_unknown_arguments_are_told_by_name() -> None:
    assert misfits(WEATHER, {"days": 3}) == [("", "city is missing", "(absent)", "required: city")]
    assert misfits(WEATHER, {"city": "Paris", "when": 1}) == [
        ("", "when is not in the schema", '{"city":"Paris","when":1}', "properties: city, days")
    ]
    assert misfits(WEATHER, {"city": "Paris", "days": 9}) == [(".days", "it violates maximum", "9", "maximum: 7")]


def test_schemas_in_other_spellings_are_understood() -> None:
    gemini = {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "nullable": True}}, "required": None}
    assert misfits(gemini, {"n": None}) == misfits(gemini, {"n": 1}) == []
    assert [path for path, *_ in misfits(gemini, {"n": "x"})] == [".n"]
    colours = {"properties": {"c": {"type": "string", "enum": ["RED"], "nullable": True}}}
    assert misfits(colours, {"c": None}) == misfits(colours, {"c": "RED"}) == []
    assert misfits(colours, {"c": "red"})[0][1] == "it is not an allowed value"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"properties": 1},
        {"properties": {"city": {"$ref": "https://schemas.example/city.json"}}},
        {},
    ],
)
def test_a_schema_that_is_not_valid_or_stands_elsewhere_is_not_judged(schema: dict[str, Any]) -> None:
    assert misfits(schema, {"city": 1}) == []


def test_regular_expressions_of_other_languages_do_not_count_and_the_rest_does() -> None:
    schema = {"properties": {"city": {"pattern": r"^\p{L}+$", "maxLength": 3}, "zip": {"pattern": "^[0-9]+$"}}}
    assert misfits(schema, {"city": "Rom", "zip": "100"}) == []
    assert [path for path, *_ in misfits(schema, {"city": "Paris", "zip": "x"})] == [".city", ".zip"]
    assert misfits({"patternProperties": {"(": {"type": "string"}}}, {"a": 1}) == []


def test_references_inside_a_schema_are_followed() -> None:
    schema = {"properties": {"at": {"$ref": "#/$defs/point"}}, "$defs": {"point": {"type": "array"}}}
    assert misfits(schema, {"at": 1}) == [(".at", "it must be array", "1", 'type: "array"')]


def test_a_tool_that_was_not_offered_is_named_with_those_that_were() -> None:
    [finding] = found("WT005", make_call(1, [HI], assistant(asks("list_files")), offers=tools("get_file", "put_file")))
    assert (finding.severity, finding.call) == ("error", 1)
    assert finding.values == {"asked": "list_files", "offered": "get_file, put_file"}


def test_tools_that_may_come_from_elsewhere_are_not_judged() -> None:
    ask = assistant(asks("list_files"))
    search = ToolSpec("tool_search", None, None, "server", {"type": "tool_search"})
    assert found("WT005", make_call(1, [HI], ask, offers=[*tools("a"), search])) == []
    assert found("WT005", make_call(1, [HI], ask, offers=tools("a"), previous="resp_0")) == []
    added = Message("system", (Control("additional_tools", {"tools": []}),))
    assert found("WT005", make_call(1, [added, HI], ask, offers=tools("a"))) == []
    assert found("WT005", make_call(1, [HI], assistant(asks("multi_tool_use.parallel")), offers=tools("a"))) == []


def test_a_tool_defined_twice_is_told_once_with_what_differs() -> None:
    twice = [spec(WEATHER), spec({**WEATHER, "required": []})]
    again = make_call(2, [HI, assistant("x"), user("more")], "y", offers=twice)
    [finding] = found("WT006", make_call(1, [HI], "x", offers=twice), again)
    assert (finding.severity, finding.path) == ("warning", "tools[1]")
    assert finding.text == "weather is defined at tools[0], and again, differently, at tools[1]"
    assert finding.values == {
        "first.parameters.required[0]": "1 elements",
        "second.parameters.required[0]": "0 elements",
    }
    same = [spec(WEATHER), spec(WEATHER)]
    assert found("WT006", make_call(1, [HI], "x", offers=same))[0].text == (
        "weather is defined at tools[0], and again at tools[1]"
    )
    assert found("WT006", make_call(1, [HI], "x", offers=tools("a", "b"))) == []
