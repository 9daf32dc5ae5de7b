"""JSON bodies are spelled as their layout says, also where the fast encoder stops."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wiretape.model.http import Layout, dump_json


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("layout", ["compact", "spaced", "indent2"])
@pytest.mark.parametrize(
    "value", [nested(253), nested(400), 2**70, {"n": [2**70, "日"]}], ids=["253", "400", "int", "in"]
)
def test_what_the_fast_encoder_refuses_is_spelled_too(layout: Layout, value: Any) -> None:
    written = dump_json(value, layout)
    assert json.loads(written) == value
    assert b"\\u" not in written
