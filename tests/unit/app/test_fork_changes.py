"""What a fork changes: an answer that is given in a file, and values."""

from __future__ import annotations

import pytest

from wiretape.app.fork_changes import _assigned, _list
from wiretape.errors import UsageError


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"no", b"[" * 200_000], ids=["no text", "no JSON", "deep"])
def test_an_answer_that_cannot_be_read_is_said_by_its_file(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"^answer\.json is not JSON"):
        _list(data, "answer.json")


def test_an_answer_is_a_list() -> None:
    assert _list('[{"text": "é"}]'.encode(), "answer.json") == ({"text": "é"},)
    with pytest.raises(UsageError, match="must be a list"):
        _list(b"{}", "answer.json")


def test_a_value_is_json_or_else_a_text() -> None:
    assert _assigned("a.b=0.5") == ("a.b", 0.5)
    assert _assigned("a=b=c") == ("a", "b=c")
    deep = "[" * 200_000
    assert _assigned(f"a={deep}") == ("a", deep)
