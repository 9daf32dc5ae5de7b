from pathlib import Path

import pytest

from wiretape.adapters.settings import Settings, load_settings
from wiretape.errors import UsageError


def write(directory: Path, text: str) -> Path:
    path = directory / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_or_a_table_there_are_defaults(tmp_path: Path) -> None:
    write(tmp_path, "[project]\nname = 'x'\n")
    assert load_settings(tmp_path) == Settings(redact=[], mask=[], hosts=[])


def test_all_keys_are_read(tmp_path: Path) -> None:
    write(tmp_path, "[tool.wiretape]\nredact = ['cust-\\d+']\nmask = ['run-\\d+']\nhosts = ['llm.corp.example']\n")
    settings = load_settings(tmp_path)
    assert settings.redact == ["cust-\\d+"]
    assert settings.mask == ["run-\\d+"]
    assert settings.hosts == ["llm.corp.example"]


def test_the_nearest_file_upward_counts_and_only_that(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    write(tmp_path, "[tool.wiretape]\nhosts = ['outer']\n")
    assert load_settings(inner).hosts == ["outer"]
    write(tmp_path / "a", "[project]\nname = 'x'\n")
    assert load_settings(inner).hosts == []


def test_an_unknown_key_is_named_with_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path, "[tool.wiretape]\nmasks = []\n")
    with pytest.raises(UsageError) as caught:
        load_settings(tmp_path)
    assert str(caught.value) == f"{path}: [tool.wiretape]: unknown key 'masks'; known keys: hosts, mask, redact"


def test_a_bad_pattern_is_named_with_what_is_wrong(tmp_path: Path) -> None:
    write(tmp_path, "[tool.wiretape]\nredact = ['ok', 'a(b']\n")
    with pytest.raises(UsageError, match=r"redact: 'a\(b' is not a regular expression: missing \), unterminated"):
        load_settings(tmp_path)


@pytest.mark.parametrize("value", ["'text'", "[1]", "3", "{a = 1}"])
def test_a_wrong_type_is_said(tmp_path: Path, value: str) -> None:
    write(tmp_path, f"[tool.wiretape]\nmask = {value}\n")
    with pytest.raises(UsageError, match="mask must be a list of strings"):
        load_settings(tmp_path)


def test_a_table_that_is_none_is_said(tmp_path: Path) -> None:
    write(tmp_path, "[tool]\nwiretape = 1\n")
    with pytest.raises(UsageError, match="must be a table"):
        load_settings(tmp_path)


def test_broken_toml_is_said(tmp_path: Path) -> None:
    write(tmp_path, "[tool.wiretape\n")
    with pytest.raises(UsageError, match="is not valid TOML"):
        load_settings(tmp_path)
