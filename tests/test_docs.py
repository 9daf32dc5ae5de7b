"""What there is, the documentation names: commands, options, environment variables, wire formats."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from tests.support.cli_docs import PAGE, commands, help_page, page

ROOT = Path(__file__).parent.parent
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def words() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in DOCS)


def test_the_page_of_the_command_line_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.support.cli_docs writes docs/cli.md anew"


@pytest.mark.parametrize(("name", "command"), commands().items())
def test_every_option_is_documented_and_says_what_it_does(name: str, command: click.Command) -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition(f"## wiretape {name}\n")[2].partition("\n## ")[0]
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.opts[-1]} has no help"
            assert any(re.search(rf"(?<![-\w]){re.escape(flag)}(?![-\w])", section) for flag in option.opts)
    assert command.help, name


@pytest.mark.parametrize(("name", "command"), commands().items())
def test_help_pages_fit_80_columns(name: str, command: click.Command) -> None:
    assert all(len(line) <= 80 for line in help_page(command, f"wiretape {name}").splitlines())


def test_every_command_is_in_the_readme_or_the_docs_beside_its_own_page() -> None:
    elsewhere = "\n".join(path.read_text(encoding="utf-8") for path in DOCS if path != PAGE)
    missing = [name for name in commands() if f"wiretape {name}" not in elsewhere]
    assert not missing


def test_every_variable_of_ours_is_documented() -> None:
    used = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"WIRETAPE_[A-Z_]+", path.read_text(encoding="utf-8"))
    }
    assert not {name for name in used if name not in words()}


def test_every_wire_format_is_documented() -> None:
    from wiretape.wire.registry import built_in

    assert not [wire.name for wire in built_in() if f"`{wire.name}`" not in words()]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_inside_the_docs_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert not [target for target in local if not (path.parent / target).exists()]
