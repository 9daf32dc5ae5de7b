"""Plug-ins: the examples of docs/plugins.md work, and a broken plug-in is named and left out."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import wiretape
from wiretape import _plugins, plugin
from wiretape.adapters.doctor.checks import plugin_checks
from wiretape.adapters.launch.programs import find_program, tape_name
from wiretape.cli.main import main
from wiretape.wire.registry import default_registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
LOG = {
    "acme_log": [
        {"to": "https://acme.example/acme/chat", "sent": {"model": "a-1", "ask": "hi"}, "got": {"say": "No"}}
        | {"ms": 40, "at": 1_700_000_000},
        {"to": "https://acme.example/acme/chat"},
    ]
}
Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Registers plug-ins as an installed package would: `install(wiretape_formats="module:object")`."""

    def forget() -> None:
        _plugins.usable.cache_clear()
        _plugins.warn.cache_clear()
        default_registry.cache_clear()

    def install(**values: str) -> None:
        groups = {kind.group.replace(".", "_"): kind.group for kind in _plugins.KINDS}
        points = [EntryPoint("acme", value, groups[group]) for group, value in values.items()]
        monkeypatch.setattr(_plugins, "entry_points", lambda group: [one for one in points if one.group == group])
        forget()

    yield install
    forget()


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch, install: Install) -> None:
    """The examples of the page, installed."""
    module: Any = ModuleType("acme_wiretape")
    for example in EXAMPLES:
        exec(example, module.__dict__)
    monkeypatch.setitem(sys.modules, "acme_wiretape", module)
    install(
        wiretape_formats="acme_wiretape:AcmeChat",
        wiretape_importers="acme_wiretape:AcmeLog",
        wiretape_exporters="acme_wiretape:AcmeCsv",
        wiretape_lint_rules="acme_wiretape:ShortAnswer",
        wiretape_presets="acme_wiretape:ACME",
    )


@pytest.fixture
def tape(acme: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tape that the example's importer made."""
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "acme.json"
    log.write_text(json.dumps(LOG, separators=(",", ":")), encoding="utf-8")
    assert main(["import", str(log), "-o", "acme.tape"]) == 0
    return tmp_path / "acme.tape"


def test_each_example_is_short_and_each_kind_has_one() -> None:
    assert len(EXAMPLES) == len(_plugins.KINDS)
    assert all(len([line for line in example.splitlines() if line.strip()]) <= 25 for example in EXAMPLES)
    assert all(f"`{kind.group}`" in PAGE for kind in _plugins.KINDS)


def test_the_example_of_an_importer(tape: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "Acme's log" not in capfd.readouterr().out
    (exchange,) = wiretape.open(tape).exchanges
    assert exchange.request.url == "https://acme.example/acme/chat"
    assert main(["import", "acme.json", "-o", "other.tape", "--format", "acme"]) == 0
    assert "has no request" in capfd.readouterr().err


def test_the_example_of_a_wire_format(tape: Path) -> None:
    (call,) = wiretape.open(tape).calls
    assert (call.format, call.model, call.text) == ("acme.chat", "a-1", "No")


def test_the_example_of_an_exporter(tape: Path) -> None:
    assert main(["export", str(tape), "-o", "acme.csv", "--format", "acme"]) == 0
    line = '1,POST,"https://acme.example/acme/chat",200'
    assert Path("acme.csv").read_text(encoding="utf-8").splitlines() == ["number,method,url,status", line]


def test_the_example_of_a_lint_rule(tape: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (finding,) = wiretape.open(tape).lint(select=["ACME"])
    assert (finding.rule, finding.values) == ("ACME001", {"answer": "No"})
    assert main(["lint", "--explain", "acme-short-answer"]) == 0
    assert "gave up" in capfd.readouterr().out


def test_the_example_of_a_preset(acme: None) -> None:
    program = find_program(["npx", "@acme/agent", "run"])
    assert program.preset.name == "acme"
    assert tape_name(["acme"]) == "acme"


def test_the_doctor_lists_plugins(acme: None) -> None:
    checks = list(plugin_checks())
    assert [check.level for check in checks] == ["ok"] * 5
    assert checks[3].said == "lint rule of an unknown package (acme_wiretape:ShortAnswer)"


@pytest.mark.parametrize("kind", _plugins.KINDS, ids=lambda kind: kind.noun)
@pytest.mark.parametrize("value", ["no_such_module:X", "wiretape.errors:NoSuchName", "wiretape.wire.base:Memo"])
def test_a_broken_plugin_is_named_and_left_out(
    kind: _plugins.PluginKind, value: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(**{kind.group.replace(".", "_"): value})
    assert _plugins.usable(kind) == {}
    assert _plugins.usable(kind) == {}
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    problem = "lacks " if "Memo" in value else "cannot be loaded: "
    assert record.getMessage().startswith(f"wiretape: warning: {kind.noun} plug-in acme ({value}) {problem}")
    (check,) = plugin_checks()
    assert (check.level, check.what) == ("warn", "plug-in acme")
    assert problem in check.said
    assert check.next


def test_everything_works_beside_broken_plugins(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    install(**{kind.group.replace(".", "_"): "no_such_module:X" for kind in _plugins.KINDS})
    capture = str(ROOT / "captures" / "subagents.tape")
    assert main(["lint", capture]) == 0
    assert main(["stats", capture]) == 0
    assert main(["export", capture, "-o", "x.har"]) == 0
    assert main(["import", "x.har", "-o", "x.tape"]) == 0
    assert find_program(["codex"]).preset.name == "codex"
    assert "wire format plug-in acme (no_such_module:X) cannot be loaded" in capfd.readouterr().err


def test_a_plugin_that_fails_at_work_costs_only_its_own_result(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(plugin.LintRule):
        id, name, severity, summary, explains, mend = "ACME002", "acme-fails", "error", "s", "e", "m"

        def check(self, subject: plugin.Subject) -> list[plugin.LintFinding]:
            raise KeyError("oops")

        def claims(self, source: plugin.Source) -> bool:
            raise KeyError("oops")

        def read(self, source: plugin.Source) -> Iterator[plugin.ImportedExchange | plugin.RefusedEntry]:
            raise KeyError("oops")

    module: Any = ModuleType("acme_wiretape")
    module.Failing = Failing
    monkeypatch.setitem(sys.modules, "acme_wiretape", module)
    monkeypatch.chdir(tmp_path)
    install(wiretape_lint_rules="acme_wiretape:Failing", wiretape_importers="acme_wiretape:Failing")
    assert wiretape.open(ROOT / "captures" / "subagents.tape").lint() == []
    Path("odd.json").write_text('{"odd": 1}', encoding="utf-8")
    assert main(["import", "odd.json", "-o", "x.tape"]) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "wiretape: warning: lint rule ACME002 failed: KeyError: 'oops'",
        "wiretape: warning: importer acme failed: KeyError: 'oops'",
    ]


def test_a_plugin_cannot_replace_a_built_in_one(acme: None, caplog: pytest.LogCaptureFixture) -> None:
    assert _plugins.usable(_plugins.IMPORTERS, ("acme",)) == {}
    assert "importer plug-in acme (acme_wiretape:AcmeLog) has the name of a built-in one" in caplog.text


def test_the_module_exports_what_it_lists() -> None:
    assert all(hasattr(plugin, name) for name in plugin.__all__)
    assert {"WireFormat", "Importer", "Exporter", "LintRule", "Preset", "Exchange", "ModelCall"} <= set(plugin.__all__)
