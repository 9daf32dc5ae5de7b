"""The source keeps its shape: small folders, one class for each name, packages with a face, private names kept private.

Each list below holds what broke a rule when the rule was written. An entry goes when its cause does; none is added.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import structure

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
UNIT = Path(__file__).parent / "unit"

# Folders with more than 16 modules.
CROWDED: dict[str, int] = {"tape/redaction": 17}

# Public class names that are defined more than once: each but one is to be renamed, or the classes merged.
DUPLICATE_CLASSES: dict[str, list[str]] = {
    "Agent": ["demo.subagents", "model.run"],
    "Aside": ["runs.sidecalls", "tape.atomic"],
    "Asked": ["adapters.pytest.options", "cli.compare.verify", "cli.debug.live", "runs.tools"],
    "Assembly": ["tape.reading.reader", "wire.answers"],
    "Call": ["adapters.inprocess.tools.decorator", "matching.async_messages.match"],
    "Change": ["debug.difference", "matching.verify.freshness"],
    "Channel": ["model.stream_text", "tape.redaction.streams"],
    "Column": ["debug.replies", "views.rows"],
    "Command": ["debug.commands.table", "views.replay.rows"],
    "Comparison": ["analyze.diff.report", "debug.difference"],
    "Context": ["adapters.inprocess.context", "debug.context"],
    "Difference": ["analyze.diff.report", "compare.difference"],
    "Due": ["adapters.http1.websocket_talk", "matching.sockets.message_runs"],
    "Found": [
        "adapters.launch.config_discovery",
        "compare.tool_book",
        "matching.async_messages.match",
        "matching.lookup.position",
    ],
    "Frame": ["debug.timeline", "matching.sockets.message_runs"],
    "Gate": ["adapters.mitm.layer_choice", "adapters.replay_server.forward_proxy"],
    "Mending": ["adapters.pytest.report.fixes", "matching.misses.miss"],
    "Message": ["model.call", "tape.redaction.aws"],
    "Miss": ["analyze.cache.evidence", "matching.values"],
    "Names": ["adapters.sealed.sealed_names", "matching.id_map", "runs.agents.names"],
    "Opened": ["cli.tapes", "tape.recording.open"],
    "Options": ["cli.run.record", "cli.run.replay"],
    "Path": ["debug.expression.expression", "runs.histories"],
    "Piece": ["matching.async_messages.pieces", "matching.playback", "tape.reading.splitting"],
    "Place": [
        "adapters.rerun.endpoints",
        "matching.lookup.index",
        "matching.report",
        "runs.threads",
        "tape.redaction.json_values",
    ],
    "Placed": ["adapters.importers.placing", "views.stats.agent_tree"],
    "Played": ["adapters.inprocess.sockets.httpx_sockets", "matching.report"],
    "Recorded": ["adapters.importers.source", "matching.recorded"],
    "Recording": ["adapters.mitm.recording", "matching.recording"],
    "Refusal": ["adapters.sealed.sealed_refusals", "model.faults"],
    "Refused": ["adapters.importers.source", "demo.client"],
    "Repeats": ["analyze.repeats", "tape.journal.searched_bytes"],
    "Reply": ["adapters.routing.tool_route", "debug.replies"],
    "Row": ["debug.replies", "rerun.values"],
    "Rule": ["analyze.lint.base", "tape.redaction.keys"],
    "Run": ["matching.sockets.message_runs", "model.run"],
    "Said": ["debug.replies", "wire.bedrock.prompt_texts"],
    "Scene": ["demo.script", "runs.agents.links"],
    "Shape": ["adapters.inprocess.tools.decorator", "compare.normalize", "rerun.growth_items"],
    "Shelf": ["matching.lookup.answer_pool", "tape.writing.body_store"],
    "Taken": ["adapters.importers.source", "adapters.inprocess.exchange_recorder"],
    "Thread": ["matching.async_messages.match", "model.run", "rerun.threads"],
    "Told": ["adapters.pytest.report.summary", "matching.async_messages.detect"],
    "Unknown": ["debug.expression.expression", "model.call"],
    "Unreadable": ["cli.gathering", "wire.lenient"],
    "Updated": ["adapters.pytest.update.report", "views.replay.update"],
    "Waiting": ["matching.sockets.message_positions", "rerun.threads"],
    "Walk": ["rerun.growth_walk", "tape.redaction.json_values"],
    "Way": ["adapters.inprocess.active_context", "matching.lookup.trie"],
}

# Private names of other projects and of the standard library outside of `_compat`: to be moved there, with the
# versions that have them.
FOREIGN_PRIVATE_NAMES: dict[str, list[str]] = {
    "adapters.inprocess.patches.aiohttp": ["_factory", "_on_read_timeout", "_value"],
    "adapters.inprocess.patches.http_client": ["_tunnel_host", "_tunnel_port"],
    "adapters.inprocess.patches.httpx": ["_content"],
    "adapters.inprocess.patches.native": ["_channel", "_target"],
    "adapters.mitm.live.keep_alive": ["_paused_event_queue"],
    "adapters.pytest.thread_context": ["_target"],
    "adapters.replay_server.http_connection": ["_unset_keepalive_if_required"],
    "adapters.replay_server.replay_protocol": ["_unset_keepalive_if_required"],
}


def test_no_folder_holds_more_modules_than_a_reader_can_scan() -> None:
    assert structure.crowded().items() <= CROWDED.items()


def test_unit_tests_mirror_the_folders_of_the_source() -> None:
    folders = {path.parent.relative_to(UNIT) for path in UNIT.rglob("test_*.py")}
    assert not [str(folder) for folder in folders if not (structure.SRC / folder).is_dir()]


def test_no_two_public_classes_share_a_name() -> None:
    assert structure.duplicate_classes().keys() <= DUPLICATE_CLASSES.keys()


@pytest.mark.slow
def test_private_names_of_other_projects_are_used_in_compat_modules_only() -> None:
    assert {name for names in structure.foreign_private_names().values() for name in names} <= {
        name for names in FOREIGN_PRIVATE_NAMES.values() for name in names
    }


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
