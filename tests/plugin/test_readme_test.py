"""The test that the README shows, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_s_test_goes_from_recorded_to_replayed_with_no_change(
    project: Project, model: CountingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    (project.root / "test_readme.py").write_text(block[1], encoding="utf-8")
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-this-test")
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    assert project.tapes() == ["test_readme/test_greeting.tape"]
    assert model.asked == ["Say hello."]
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["Say hello."]
    changed = block[1].replace("Say hello.", "Say goodbye.")
    (project.root / "test_readme.py").write_text(changed, encoding="utf-8")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*recorded  Say hello.", "*live      Say goodbye."])
