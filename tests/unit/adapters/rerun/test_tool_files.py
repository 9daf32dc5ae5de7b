"""`wiretape rerun --tools FILE.py`: functions by name, and their results as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiretape.adapters.rerun.tool_files import ToolFile
from wiretape.errors import UsageError
from wiretape.model.call import ToolCall, ToolResult

TEXT = """
import json
from dataclasses import dataclass

def said(city):
    return f"warm in {city}"

def found(query, limit=2):
    return {"query": query, "limit": limit}

async def later():
    return [1]

def broken():
    raise ValueError("no")

def _hidden():
    return 1
"""


@pytest.fixture
def tools(tmp_path: Path) -> ToolFile:
    path = tmp_path / "my_tools.py"
    path.write_text(TEXT, encoding="utf-8")
    return ToolFile(str(path))


@pytest.mark.parametrize(
    ("name", "arguments", "text", "failed"),
    [
        ("said", '{"city": "成都"}', "warm in 成都", None),
        ("found", '{"query": "成都"}', '{"query": "成都", "limit": 2}', None),
        ("later", "{}", "[1]", None),
        ("broken", "{}", "ValueError: no", True),
        ("said", "[1", "the arguments are not a JSON object: [1", True),
    ],
)
def test_a_function_returns_the_result_of_its_call(
    tools: ToolFile, name: str, arguments: str, text: str, failed: bool | None
) -> None:
    assert tools(ToolCall("c1", name, arguments)) == ToolResult("c1", name, text, failed)


@pytest.mark.parametrize("name", ["missing", "_hidden", "json", "dataclass"])
def test_other_names_have_no_result(tools: ToolFile, name: str) -> None:
    assert tools(ToolCall("c1", name, "{}")) is None


def test_imported_functions_are_tools_if_all_lists_them(tmp_path: Path) -> None:
    path = tmp_path / "my_tools.py"
    path.write_text("from os.path import basename, dirname\n__all__ = ['basename']\n", encoding="utf-8")
    tools = ToolFile(str(path))
    assert tools(ToolCall("c1", "basename", '{"p": "/a/b"}')) == ToolResult("c1", "basename", "b")
    assert tools(ToolCall("c1", "dirname", '{"p": "/a/b"}')) is None


def test_a_broken_file_is_reported_by_name(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("import nothing_of_that_name\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"bad\.py: cannot be loaded: ModuleNotFoundError"):
        ToolFile(str(path))
