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
    known = "check, hosts, lint, mask, max_age, max_age_action, redact, redact_tool_arguments, sealed"
    assert str(caught.value) == f"{path}: [tool.wiretape]: unknown key 'masks'; known keys: {known}"


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


def test_tables_of_their_own_are_spelled_as_the_options_are(tmp_path: Path) -> None:
    text = "[tool.wiretape.lint]\nignore = ['WT010']\nfail-on = 'warning'\n"
    write(tmp_path, text + "[tool.wiretape.check]\nmax-input = '50k'\nmax-cost = 1\nno-lint-errors = true\n")
    settings = load_settings(tmp_path)
    assert (settings.lint.ignore, settings.lint.fail_on) == (["WT010"], "warning")
    assert (settings.check.max_input, settings.check.max_cost, settings.check.no_lint_errors) == ("50k", 1.0, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lint = 1", "lint must be a table: [tool.wiretape.lint]"),
        ("[tool.wiretape.lint]\nfail_on = 'error'", "lint: unknown key 'fail_on'; known keys: fail-on, ignore, select"),
        ("[tool.wiretape.check]\nmax-calls = 'six'", "check: max-calls: input should be a valid integer, not 'six'"),
        (
            '[tool.wiretape.check]\nmax-input = "1kb"',
            "check: max-input is '1kb': use a whole number, such as 50000 or 50k",
        ),
        (
            '[tool.wiretape.check]\ntolerance = "lots"',
            "check: tolerance is 'lots': use a share between 0 and 1, such as 0.6 or 60%",
        ),
        ("[tool.wiretape.check]\nmin-cache-hit = 60", "check: min-cache-hit is 60: use a share between 0 and 1"),
        ("[tool.wiretape.check]\nmax-call = 6", "check: unknown key 'max-call'; known keys: allow-unknown, baseline"),
    ],
)
def test_what_is_wrong_in_a_table_is_said_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, f"[tool.wiretape]\n{text}\n")
    with pytest.raises(UsageError) as caught:
        load_settings(tmp_path)
    assert str(caught.value).startswith(f"{path}: [tool.wiretape]: {said}")


@pytest.mark.parametrize(("value", "read"), [("30", 30), ('"30d"', "30d"), ("1.5", 1.5)])
def test_max_age_is_a_number_of_days_or_a_spelled_age(value: str, read: object, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[tool.wiretape]\nmax_age = {value}\nmax_age_action = "fail"\n')
    settings = load_settings(tmp_path)
    assert (settings.max_age, settings.max_age_action) == (read, "fail")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('max_age = "soon"', "max_age: 'soon' is not an age"),
        ("max_age = true", "max_age: True is not an age"),
        ("max_age = [30]", r"max_age: \[30\] is not an age"),
        ('sealed = "yes"', "sealed must be true or false"),
        ('max_age_action = "shout"', "max_age_action must be 'warn' or 'fail'"),
    ],
)
def test_an_age_that_cannot_be_meant_is_named(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.wiretape]\n{line}\n")
    with pytest.raises(UsageError, match=said):
        load_settings(tmp_path)
