"""Whether `wiretape replay` seals its program: the option, the setting, and no program to seal."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiretape.app.replay import ReplayRunOptions, is_sealed
from wiretape.errors import UsageError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "pyproject.toml"


@pytest.mark.parametrize(
    ("setting", "option", "sealed"),
    [("", None, False), ("", True, True), ("true", None, True), ("true", False, False), ("false", True, True)],
)
def test_the_option_goes_over_the_setting(setting: str, option: bool | None, sealed: bool, project: Path) -> None:
    project.write_text(f"[tool.wiretape]\nsealed = {setting}\n" if setting else "")
    assert is_sealed(ReplayRunOptions((), sealed=option), ["cmd"]) is sealed


def test_without_a_program_the_option_is_an_error(project: Path) -> None:
    with pytest.raises(UsageError, match="--sealed needs a program to seal: wiretape replay TAPE --sealed -- CMD"):
        is_sealed(ReplayRunOptions((), sealed=True), [])


def test_and_the_setting_says_that_nothing_is_sealed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_text("[tool.wiretape]\nsealed = true\n")
    assert not is_sealed(ReplayRunOptions(()), [])
    said = "wiretape: `sealed` in the settings applies to programs; without CMD nothing is sealed\n"
    assert capsys.readouterr().err == said
