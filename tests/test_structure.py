"""The source keeps its shape: small folders, no import circles, unique class names, private names kept private.

The lists below name the exceptions, each with its reason.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support import structure

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
UNIT = Path(__file__).parent / "unit"

# Imports for annotations only, or at the first use: without them no module imports itself through others.
BACK_IMPORTS = {
    ("tape.redaction.json_values", "tape.redaction.redactor"): "annotations: its functions redact with the Redactor",
    ("tape.redaction.streams", "tape.redaction.redactor"): "annotations: its functions redact with the Redactor",
    ("matching.faults.apply", "matching.playback"): "annotations: faults change a Playback, which starts with them",
    ("adapters.inprocess.child_server", "adapters.inprocess.context_replay"): "annotations: it serves a Replay",
}

# Folders side by side that import each other.
MUTUAL_FOLDERS = {
    ("matching.misses", "matching.sockets"): "a miss lists recorded WebSockets; a WebSocket that misses is explained",
}


def test_no_folder_holds_more_modules_than_a_reader_can_scan() -> None:
    assert structure.crowded() == {}


def test_no_module_imports_itself_through_others() -> None:
    graph = {name: set(structure.imported(name)) - {name} for name in structure.modules()}
    for module, imported in BACK_IMPORTS:
        graph[f"wiretape.{module}"].remove(f"wiretape.{imported}")
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def test_no_two_folders_import_each_other() -> None:
    assert structure.mutual_folders() == set(MUTUAL_FOLDERS)


def test_unit_tests_mirror_the_folders_of_the_source() -> None:
    folders = {path.parent.relative_to(UNIT) for path in UNIT.rglob("test_*.py")}
    assert not [str(folder) for folder in folders if not (structure.SRC / folder).is_dir()]


def test_no_two_public_classes_share_a_name() -> None:
    assert structure.duplicate_classes() == {}


def test_private_names_of_other_projects_are_used_in_compat_modules_only() -> None:
    assert structure.foreign_private_names() == {}


def test_no_private_module_is_imported_from_outside_its_package() -> None:
    reached = [(who, package, name) for who, package, name in structure.from_outside() if name.startswith("_")]
    assert reached == []


@pytest.mark.parametrize("package", sorted(structure.packages()))
def test_each_package_lists_what_others_may_import(package: str) -> None:
    face = structure.face(package)
    assert face is not None, f"{package}/__init__.py has no __all__"
    if package == "wiretape":  # the public face
        return
    used = {name for _, there, name in structure.from_outside() if there == package}
    assert used <= set(face), "other packages import what __all__ does not list"


@pytest.mark.parametrize("package", sorted(structure.packages() - {"wiretape"}))
def test_the_map_of_the_source_describes_each_folder(package: str) -> None:
    first = (structure.modules()[package].body[0].value.value).splitlines()[0]  # type: ignore[attr-defined]
    folder = package.rpartition(".")[2]
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert any(line.split()[:1] == [f"{folder}/"] and line.endswith(first) for line in lines), f"{folder}/ {first}"
