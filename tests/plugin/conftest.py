"""A project of its own for each test, with a model on loopback; its runs of pytest are inside this process.

pytest forgets what a run inside it has imported: everything heavy is imported here, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import httpcore
import httpx
import openai
import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

import wiretape.adapters.pytest.outcome  # noqa: F401

assert httpcore  # httpx loads it with its first client, and keeps its exceptions
assert httpx
assert openai
with suppress(ImportError):
    import httpcore2  # noqa: F401
with suppress(ImportError):
    import mitmproxy.certs  # noqa: F401


@pytest.fixture
def model() -> Iterator[CountingModel]:
    with CountingModel() as running:
        yield running


@pytest.fixture
def project(pytester: pytest.Pytester, model: CountingModel, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("MODEL_URL", model.url)
    # With CI or BUILD_NUMBER, pytest repeats whole messages in its summary.
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    return Project(pytester)
