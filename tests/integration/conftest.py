"""Fixtures that several integration tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory, so that the certificates of one module are made once."""
    return tmp_path_factory.mktemp("state")
