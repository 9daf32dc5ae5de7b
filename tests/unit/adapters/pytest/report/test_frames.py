"""Which line of a call stack is the person's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wiretape.adapters.pytest.report.frames import asked_at


def calling(path: Path, inner: Callable[[], Any]) -> Callable[[], Any]:
    """A function of a file, which calls `inner` in its second line."""
    names: dict[str, Any] = {"inner": inner}
    exec(compile("def outer():\n    return inner()\n", str(path), "exec"), names)
    made: Callable[[], Any] = names["outer"]
    return made


@pytest.mark.parametrize("installed", ["lib/site-packages/sdk.py", "lib/dist-packages/sdk.py", "../sdk/client.py"])
def test_it_is_the_innermost_below_the_rootdir_that_is_not_installed(
    tmp_path: Path, installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    monkeypatch.chdir(tmp_path)
    sdk = calling((root / installed).resolve(), lambda: asked_at(root))
    test = calling(root / "test_it.py", calling(root / "agent.py", sdk))
    assert test() == "project/agent.py:2"
    assert sdk() is None


def test_an_environment_inside_the_project_is_not_the_person_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    script = calling(tmp_path / ".venv" / "bin" / "agent", lambda: asked_at(tmp_path))
    assert script() is None
