"""JSONPath over a call."""

from __future__ import annotations

import pytest
from tests.support.debugging import debugger

from wiretape.debug.expression.names import found_by_jsonpath
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError

WORLD = debugger().annotated
LAST = Stop("answer", 4)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.call", [4]),
        ("$['usage'].cached", [256]),
        ("$.request.messages[-1].role", ["tool"]),
        ("$.request.messages[?@.role == 'user'].blocks[0].text", ["帮我约明天下午 3 点和张三开产品评审会，1 小时"]),
        ("$.request.tools[*].name", ["schedule_event"]),
        ("$..cached_tokens", [256, 256]),
        ("$.wire.request.body.model", ["deepseek-v4-flash-vision-exp"]),
        ("$.nothing", []),
    ],
)
def test_a_path_finds_every_value(path: str, found: list[object]) -> None:
    assert found_by_jsonpath(WORLD, LAST, path) == found


@pytest.mark.parametrize("path", ["$.", "$[", "$.request.messages[?", "$.a b"])
def test_an_invalid_jsonpath_is_named(path: str) -> None:
    with pytest.raises(UsageError, match="is not a JSONPath"):
        found_by_jsonpath(WORLD, LAST, path)


def test_an_end_of_the_tape_has_no_values_and_a_hint() -> None:
    with pytest.raises(UsageError, match="step, next or continue goes to the first call"):
        found_by_jsonpath(WORLD, Stop("start"), "$.call")
