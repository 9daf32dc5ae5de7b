"""Recorded loops of other projects: each request follows from the call before it, or is the client's choice."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.corpora import cassettes
from tests.support.wire import REGISTRY

from wiretape.rerun.scheduler import Rerun

# Clients that change the answer, each checked by hand: reasoning truncated or joined, an edited history, an invented
# answer, a tool search in the client.
KNOWN = {
    "charmbracelet+fantasy": 9,
    "simonw+llm": 0,
    "simonw+llm-anthropic": 0,
    "simonw+llm-openai-plugin": 0,
    "simonw+llm-openrouter": 0,
    "simonw+llm-gemini": 0,
    "pydantic+logfire": 0,
    "pydantic+pydantic-ai": 15,
}
FEWEST = {"pydantic+pydantic-ai": 500, "charmbracelet+fantasy": 100, "simonw+llm": 5}


@pytest.mark.slow
@pytest.mark.parametrize("archive", KNOWN)
def test_recorded_requests_follow_from_their_formats(archive: str) -> None:
    outcomes: Counter[str] = Counter()
    apart: list[str] = []
    for path, exchanges in cassettes(archive):
        rerun = Rerun(exchanges, registry=REGISTRY)
        while (send := rerun.next()) is not None:
            response = rerun.recorded(send)
            assert response is not None
            rerun.answered(response)
        outcomes.update(row.outcome for row in rerun.outcomes)
        apart += [f"{path} call {row.number}" for row in rerun.outcomes if row.outcome == "differs"]
    assert outcomes["equal"] >= FEWEST.get(archive, 0)
    assert len(apart) <= KNOWN[archive], "\n".join(apart)
