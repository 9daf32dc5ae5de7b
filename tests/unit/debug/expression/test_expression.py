"""The expression language: values, errors, and safety."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.debugging import debugger, runs

from wiretape.debug.annotated_run import AnnotatedRun
from wiretape.debug.annotations import Annotations
from wiretape.debug.expression.expression import evaluate, holds, known_from
from wiretape.debug.expression.names import NAMES, SYNONYMS
from wiretape.debug.expression.parsing import parse
from wiretape.debug.replies import Value
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model.run import Run

WORLD = debugger().annotated
LAST = Stop("answer", 4)  # 462 in, 256 cached, 31 out


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("input = 462", True),
        ("input == 462", True),
        ("input != 462", False),
        ("input>400 and output<100", True),
        ("input > 400 if output > 100", False),
        ("input>0.4k", True),
        ("input < 1M", True),
        ("cached<0.5", False),
        ("cached < 60%", True),
        ("cached = 256", True),
        ("hit > 0.55 && hit < 56%", True),
        ("cached / input > 0.5", True),
        ("input - cached = 206", True),
        ("-input < 0", True),
        ("not input > 400", False),
        ("!(input > 400)", False),
        ("agent=root", True),
        ("agent=ROOT", True),
        ("agent=r*t", True),
        ("agent=sub", False),
        ("agent!=root or call=4", True),
        ('agent = "root"', True),
        ("answer ~ 已经帮你", True),
        ("answer !~ 已经帮你", False),
        ("answer ~ /\\d{4}-\\d\\d-\\d\\d/", True),
        ("answer ~ /ROOT/i", False),
        ("finish = stop", True),
        ("first", False),
        ("first = false", True),
        ("error", False),
        ("error = 429", False),
        ("reasoning = unknown", True),
        ("reasoning != unknown", False),
        ("reasoning > 0", False),
        ("reasoning < 0", False),
        ("reasoning != 5", False),
        ("asks = schedule_event", False),
        ("usage.cached >= 256", True),
        ("request.messages.length = 5", True),
        ("request.messages[0].role = system", True),
        ("request.messages[-1].blocks[0].type = tool_result", True),
        ("request['model'] ~ vision", True),
        ("request.messages[1:3].length = 2", True),
        ("request.nothing = 1", False),
        ("request.messages[99].role = user", False),
        ("call = 4.0", True),
    ],
)
def test_a_condition(text: str, met: bool) -> None:
    assert holds(parse(text), WORLD, LAST) is met


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected a name, a number or a quoted text"),
        ("inptu > 5", "unknown name 'inptu'; did you mean input"),
        ("input >", "at its end"),
        ("input > 5 5", "unexpected"),
        ("(input > 5", "a closing parenthesis is missing"),
        ("input and", "at its end"),
        ("answer ~ /(/", "is not a regular expression"),
        ("__import__('os')", "unknown name '__import__'"),
        ("request.messages[x]", "expected .name, [index]"),
        ("(" * 60 + "1" + ")" * 60, "nested too deeply"),
        ("not " * 60 + "1", "nested too deeply"),
        ("1 + " * 600 + "1", "too long"),
    ],
)
def test_syntax_errors_name_their_position(text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(text)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("request.mesages", "did you mean request.messages?"),
        ("request.messages.role", "request.messages is a list of 5: use request.messages[-1]"),
        ("request.messages[7]", "it has 5: 0 to 4"),
        ("call.x", "call is 4 and has no member"),
        ("answer.x", "answer is a text that is not JSON"),
        ("response.error.code", "response.error is unknown or absent here"),
        ("agent + 1", "+ takes numbers"),
        ("input[0]", "input is not a list"),
    ],
)
def test_a_missing_member_is_named(text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        evaluate(parse(text), WORLD, LAST)
    assert says in str(error.value)


def test_a_tools_arguments_are_looked_into() -> None:
    assert evaluate(parse("arguments.duration_minutes"), WORLD, Stop("tool", 2, 0)) == 60
    assert evaluate(parse("response.blocks[0].arguments.duration_minutes * 2"), WORLD, Stop("answer", 2)) == 120


def test_an_expression_is_evaluated_where_all_its_names_have_values() -> None:
    assert known_from(parse("call=3 and agent=root")) == "request"
    assert known_from(parse("call=3 and input>5")) == "answer"
    assert known_from(parse("input>5 or tool=x")) == "tool"
    assert known_from(parse("1=1")) == "answer"


def test_a_division_by_nothing_is_unknown() -> None:
    assert evaluate(parse("input / 0"), WORLD, LAST) is None
    assert evaluate(parse("reasoning + 1"), WORLD, LAST) is None


def test_every_synonym_means_a_name() -> None:
    assert set(SYNONYMS.values()) <= set(NAMES)
    assert not set(SYNONYMS) & set(NAMES)


PIECES = st.sampled_from([*NAMES, *"()=<>~!+-*/.[]'\"/", "and", "or", "not", "if", "5", "5k", "50%", "unknown", "x y"])


@given(runs(most=4), st.lists(PIECES, max_size=10), st.text(max_size=10))
def test_every_text_evaluates_to_a_value_or_an_error(run: Run, pieces: list[str], text: str) -> None:
    annotated = AnnotatedRun(run, Annotations())
    for written in (" ".join(pieces), "".join(pieces), text, f"request{text}", f"answer~{text}"):
        for stop in annotated.timeline.stops[1:-1]:
            with contextlib.suppress(UsageError):
                evaluate(parse(written), annotated, stop)


def test_paths_as_the_screen_shows_them_are_paths_in_the_body() -> None:
    session = debugger()
    session.execute("goto 4")
    (value,) = session.execute("print body.input[4].output").parts
    assert isinstance(value, Value)
    assert value.value.startswith("已为你创建")
    assert "body.input" in (session.execute("print request.input").error or "")
    assert "body.input" in (session.execute("print input[4].output").error or "")
