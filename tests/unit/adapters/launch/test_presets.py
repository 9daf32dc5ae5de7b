"""The table of presets: that it is whole, and that every entry is usable as it stands."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from wiretape.adapters.launch.child import proxy_variables
from wiretape.adapters.launch.presets import LANGUAGES, PRESETS, PROGRAM, REASONS, Preset
from wiretape.adapters.launch.trust import ADDING, PHP_SETTINGS, REPLACING
from wiretape.adapters.routing import tool_route
from wiretape.adapters.routing.routes import base_url_problem

pytestmark = pytest.mark.slow

EVERY = (*PRESETS, *LANGUAGES, PROGRAM)
PAGE = Path(__file__).parents[4] / "docs" / "clients.md"
NAMES = [preset.name for preset in EVERY]


def test_the_common_clients_are_there() -> None:
    wanted = ["dsh", "claude", "codex", "gemini", "qwen", "pi", "opencode", "cline", "cursor-agent", "aider", "goose"]
    assert [preset.name for preset in PRESETS] == wanted


def test_no_name_leads_to_two_presets() -> None:
    names = Counter(name for p in EVERY for name in (*p.commands, *p.packages, *p.modules))
    # aider's command and module share a name, which is one preset's own.
    assert [name for name, times in names.items() if times > 1 and name != "aider"] == []


@pytest.mark.parametrize("preset", EVERY, ids=NAMES)
def test_what_is_set_has_a_reason_and_one_value(preset: Preset) -> None:
    for variable in preset.variables:
        assert variable.why
        assert sum(map(bool, (variable.value, variable.route, variable.made))) == 1, variable.name
        assert not variable.route or base_url_problem(variable.route) is None


@pytest.mark.parametrize("preset", [p for p in EVERY if p.config is not None], ids=lambda p: p.name)
def test_configuration_can_be_overridden_as_its_preset_says(preset: Preset) -> None:
    config = preset.config
    assert config is not None
    assert config.override == "flag" or config.override_variable
    patterns = [key.split(".") for key in config.keys]
    for key, url in config.defaults:
        parts = key.split(".")
        assert base_url_problem(url) is None
        assert any(
            len(pattern) == len(parts) and all(a in ("*", b) for a, b in zip(pattern, parts, strict=True))
            for pattern in patterns
        ), f"{key} is none of the keys that are read"


def test_every_variable_that_all_programs_get_has_a_reason() -> None:
    names = {name.upper() for name in (*proxy_variables(1), *REPLACING, *ADDING, PHP_SETTINGS, tool_route.VARIABLE)}
    assert names == set(REASONS)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.name)
def test_every_preset_is_documented_with_what_was_seen(preset: Preset) -> None:
    page = PAGE.read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{preset.name}`"))
    assert (preset.verified or "not seen running") in row
    for variable in preset.variables:
        assert f"`{variable.name}`" in page


@pytest.mark.parametrize("preset", LANGUAGES, ids=lambda p: p.name)
def test_every_language_is_documented_with_what_was_seen(preset: Preset) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("## Other languages")[2].partition("\n## ")[0]
    assert f"`{preset.name}`" in section
    assert preset.verified
    assert preset.verified in section
    for variable in preset.variables:
        assert f"`{variable.name}" in page
