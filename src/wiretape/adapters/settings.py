"""Reads `[tool.wiretape]` from the nearest pyproject.toml: the settings of a project."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo

from wiretape.analyze.budgets.amounts import count, share
from wiretape.errors import UsageError
from wiretape.matching.tape_age import parse_max_age

if TYPE_CHECKING:
    from wiretape.tape.redaction import Redactor


def _regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


def _age(given: object) -> object:
    if given is not None:
        parse_max_age(given)
    return given


def _spelled(read: Callable[[Any, str], object]) -> BeforeValidator:
    """Validates a value as the command-line option does: `read` raises UsageError. The value is not converted."""

    def check(given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, int | float | str) and not isinstance(given, bool):
            try:
                read(given, _dashed(info.field_name or ""))
            except UsageError as error:
                raise ValueError(str(error)) from None
        return given

    return BeforeValidator(check)


Pattern = Annotated[str, AfterValidator(_regular_expression)]
Count = Annotated[int | str | None, _spelled(count)]
Share = Annotated[float | str | None, _spelled(share)]


def _dashed(name: str) -> str:
    return name.replace("_", "-")


class LintSettings(BaseModel):
    """`[tool.wiretape.lint]`: the defaults of `wiretape lint`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=_dashed)

    select: list[str] = []
    """Rules to use: ids, prefixes of ids, or names. Empty: all."""
    ignore: list[str] = []
    """Rules not to use."""
    fail_on: Literal["error", "warning", "info", "never"] = "error"
    """The lowest severity at which `lint` exits with 1."""


class CheckSettings(BaseModel):
    """`[tool.wiretape.check]`: the budgets of `wiretape check`, in the syntax of its options."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=_dashed)

    max_calls: int | None = None
    max_calls_per_turn: int | None = None
    max_tool_calls_per_turn: int | None = None
    max_turn_ms: int | None = None
    max_input: Count = None
    max_output: Count = None
    max_cost: float | None = None
    min_cache_hit: Share = None
    no_lint_errors: bool = False
    allow_unknown: bool = False
    baseline: str | None = None
    tolerance: Share = None


class Settings(BaseModel):
    """`[tool.wiretape]`. By default every list is empty, and nothing is limited."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    redact: list[Pattern] = []
    """Regular expressions whose matches never reach a tape. If a pattern has a group, only the group is replaced."""
    mask: list[Pattern] = []
    """Regular expressions whose matches are ignored when a replay compares texts."""
    hosts: list[str] = []
    """Hosts to record in addition to known model providers."""
    max_age: Annotated[int | float | str | None, BeforeValidator(_age)] = None
    """The greatest age of a replayed tape: days, or "30d", "12h", "2w"."""
    max_age_action: Literal["warn", "fail"] = "warn"
    """What happens with an older tape."""
    redact_tool_arguments: bool = False
    """Whether to replace credentials that a model wrote into tool arguments."""
    sealed: bool = False
    """Whether `wiretape replay` runs programs in a network that contains only the replay."""
    lint: LintSettings = LintSettings()
    check: CheckSettings = CheckSettings()


def load_settings(start: Path) -> Settings:
    """The settings for a directory: from its pyproject.toml, or that of the nearest parent that has one.

    As in other tools, only the nearest file is read, even if it has no `[tool.wiretape]`.
    """
    start = start.resolve()
    for directory in (start, *start.parents):
        path = directory / "pyproject.toml"
        if path.is_file():
            return _settings_of(path)
    return Settings()


def redactor_of(
    settings: Settings, patterns: Sequence[str] = (), tool_arguments: bool = False, continues: Path | None = None
) -> Redactor:
    """Return the redactor that a project's settings ask for. Every tape is written with one of these.

    `patterns` and `tool_arguments` come from the command line. `continues`: a tape whose placeholders keep their
    meaning on the tape that is written; it need not exist.
    """
    from wiretape.tape.redaction import Redactor
    from wiretape.tape.storage import read_text

    redactor = Redactor([*settings.redact, *patterns], tool_arguments or settings.redact_tool_arguments)
    if continues is not None and continues.exists():
        redactor.resume(read_text(continues).decode("utf-8", "replace"))
    return redactor


def _settings_of(path: Path) -> Settings:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not UTF-8, as TOML must be") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
    tool = document.get("tool")
    table: Any = tool.get("wiretape", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tool.wiretape must be a table: [tool.wiretape]")
    try:
        return Settings.model_validate(table)
    except ValidationError as error:
        raise UsageError(f"{path}: [tool.wiretape]: {_first_fault(error)}") from None


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    key = str(fault["loc"][0])
    if key in _TABLES:
        return _fault_of_table(key, fault)
    if fault["type"] == "extra_forbidden":
        return f"unknown key {key!r}; known keys: {', '.join(sorted(Settings.model_fields))}"
    if fault["type"] == "value_error":
        return f"{key}: {fault['ctx']['error']}"
    if fault["type"] == "literal_error":
        return f"{key} must be {fault['ctx']['expected']}"
    if fault["type"] == "bool_type":
        return f"{key} must be true or false"
    return f'{key} must be a list of strings, such as {key} = ["…"]'


_TABLES: dict[str, type[BaseModel]] = {"lint": LintSettings, "check": CheckSettings}


def _fault_of_table(table: str, fault: Any) -> str:
    """The message for a fault in a table such as `[tool.wiretape.lint]`."""
    if len(fault["loc"]) < 2:
        return f"{table} must be a table: [tool.wiretape.{table}]"
    key = str(fault["loc"][1])
    if fault["type"] == "extra_forbidden":
        known = sorted(map(_dashed, _TABLES[table].model_fields))
        return f"{table}: unknown key {key!r}; known keys: {', '.join(known)}"
    if fault["type"] == "value_error":  # the error names the key
        return f"{table}: {fault['ctx']['error']}"
    return f"{table}: {key}: {fault['msg'][:1].lower()}{fault['msg'][1:]}, not {fault['input']!r}"
