"""A recording equals itself in every format; a changed one differs.

The archives are next to the repository; without them the tests are skipped.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.corpora import cassettes

from wiretape.analyze.budgets.baseline import against
from wiretape.analyze.cost import pricing
from wiretape.analyze.diff.runs import compare_runs
from wiretape.model.call import Message, Text
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode

ARCHIVES = ["pydantic+logfire", "simonw+llm-openrouter"]


@pytest.mark.parametrize("archive", ARCHIVES)
def test_a_recording_equals_itself(archive: str) -> None:
    price = pricing()
    for path, exchanges in cassettes(archive):
        one, other = build_run(decode(exchanges)), build_run(decode(exchanges))
        found = compare_runs(one, other)
        assert found.same, f"{path}: {found.first}"
        assert not any(turn.varied for turn in found.turns), path
        assert {judged.outcome for judged in against(one, other, 0, price, price)} <= {"kept", "skipped"}, path


def test_one_more_word_is_found() -> None:
    told = 0
    for path, exchanges in cassettes("pydantic+logfire"):
        calls = decode(exchanges)
        if not calls or not calls[0].request.messages or calls[0].kind != "inference":
            continue
        first, *rest = calls[0].request.messages
        more = Message(first.role, (*first.blocks, Text("and one more word")), first.block_paths, first.extra)
        changed = replace(calls[0], request=replace(calls[0].request, messages=(more, *rest)))
        found = compare_runs(build_run(calls), build_run([changed, *calls[1:]]))
        assert not found.same, path
        told += 1
    assert told > 10
