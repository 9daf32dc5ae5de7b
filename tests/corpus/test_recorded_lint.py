"""Lint on recorded traffic of other projects: every finding was checked, and none is false.

The archives are next to the repository; without them the tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.corpora import cassettes

from wiretape.analyze.lint.base import LintFinding, Subject
from wiretape.analyze.lint.rules import lint, named
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode

ARCHIVES = {
    "elastic+elastic-otel-python-instrumentations": "",
    "open-telemetry+opentelemetry-python-contrib": "",
    "pydantic+logfire": "",
    "simonw+llm-openai-plugin": "",
    "simonw+llm-openrouter": "",
    "pydantic+pydantic-ai": "test_tool_search",
}
# In these recordings models do invent tools and arguments, and servers break off.
TRUE = {
    ("test_tool_search_eval[anthropic].yaml", "WT004"),  # the call has `ticker`, the schema `symbol`
}


def findings(archive: str, part: str) -> Iterator[tuple[str, LintFinding]]:
    rules = [rule for rule in named("WT") if rule.id not in ("WT010", "WT014")]  # common here
    for path, exchanges in cassettes(archive, part):
        calls = decode(exchanges)
        for finding in lint(Subject(build_run(calls)), rules) if calls else ():
            yield path.rpartition("/")[2], finding


@pytest.mark.parametrize("archive", ARCHIVES)
def test_there_are_no_false_findings(archive: str) -> None:
    errors = {(name, one.rule) for name, one in findings(archive, ARCHIVES[archive]) if one.severity == "error"}
    assert errors - TRUE == set()


def test_invented_tools_and_arguments_are_found() -> None:
    part = "test_multimodal_tool_return_matrix[direct-uploaded_file-video-google_vertex]"
    found = {(one.rule, one.call, one.path): one.values for _, one in findings("pydantic+pydantic-ai", part)}
    assert found["WT005", 1, "answer.tool_calls[0]"] == {"asked": "list_files", "offered": "get_file"}
    assert found["WT004", 2, "answer.tool_calls[0].arguments"] == {
        "argument": '{"name":"input_file_0"}',
        "schema": "properties: (none)",
    }


def test_errors_in_the_middle_of_a_stream_are_found() -> None:
    found = [one for _, one in findings("pydantic+pydantic-ai", "test_openrouter_stream_error")]
    broken, contradicts = found
    assert (broken.rule, broken.call, broken.values["error"]) == ("WT012", 1, "Token limit reached")
    # It reports 11 reasoning tokens, but 10 tokens of output.
    assert (contradicts.rule, contradicts.call) == ("WT016", 1)
