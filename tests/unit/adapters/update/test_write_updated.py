"""How a test's recording becomes its tape, where another test has recorded the same one meanwhile."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.replaying import chat, exchange, user

from wiretape.adapters.pytest.options import Mode
from wiretape.adapters.update.staged_recording import StagedRecording
from wiretape.adapters.update.write_updated import TapePlacement, left_of
from wiretape.model.http import JsonBody
from wiretape.tape.editing.edit import merge_tapes
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.redaction import Redactor


def write(path: Path, *asked: str) -> None:
    header = Header(wiretape=VERSION, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape 0")
    exchanges = tuple(exchange(number, chat(user(text)), text) for number, text in enumerate(asked, 1))
    merge_tapes([Tape(None, header, exchanges, (), False)], path, "wiretape 0", Redactor(()))


def asked(tape: Tape) -> list[str]:
    bodies = [one.request.body for one in tape.exchanges]
    return sorted(body.value["messages"][0]["content"] for body in bodies if isinstance(body, JsonBody))


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "shared.tape"


@pytest.mark.parametrize("mode", [Mode.ONCE, Mode.REWRITE, Mode.NEW])
@pytest.mark.parametrize("old", [(), ("old",)], ids=["no tape", "an old tape"])
def test_what_another_worker_has_recorded_meanwhile_stays(tape: Path, mode: Mode, old: tuple[str, ...]) -> None:
    if old:
        write(tape, *old)
    one, other = [
        (TapePlacement(tape, tape.with_name(".turns")), StagedRecording(tape, goes_on=False)) for _ in range(2)
    ]
    for (placement, made), text in ((one, "one"), (other, "other")):
        write(made.fresh, text)
        placement.keep(made, merge=mode is Mode.ALL)
    assert asked(read_tape(tape)) == ["one", "other"]


def test_a_rewrite_gives_what_it_dropped_for_others_to_record_anew(tape: Path) -> None:
    write(tape, "one", "two", "three")
    placement, made = TapePlacement(tape, None), StagedRecording(tape, goes_on=False)
    write(made.fresh, "one")
    dropped = placement.keep(made, merge=False)
    assert dropped is not None
    assert asked(dropped) == ["three", "two"]
    assert asked(read_tape(tape)) == ["one"]
    handed_over = pickle.loads(pickle.dumps(dropped))  # as workers of xdist do
    write(tape, "one", "two")
    left = left_of(handed_over, read_tape(tape))
    assert left is not None
    assert asked(left) == ["three"]


@pytest.mark.parametrize("mode", [Mode.ONCE, Mode.NEW, Mode.ALL])
def test_other_modes_drop_nothing(tape: Path, mode: Mode) -> None:
    write(tape, "one")
    placement, made = TapePlacement(tape, None), StagedRecording(tape, goes_on=False)
    write(made.fresh, "one", "two")
    assert placement.keep(made, merge=mode is Mode.ALL) is None
    assert asked(read_tape(tape)) == ["one", "two"]


def test_a_tape_that_nobody_can_read_is_rewritten(tape: Path) -> None:
    tape.write_text("no tape at all\n")
    placement, made = TapePlacement(tape, None), StagedRecording(tape, goes_on=False)
    write(made.fresh, "one")
    assert placement.keep(made, merge=False) is None
    assert asked(read_tape(tape)) == ["one"]
