"""Whatever writes a tape asks `redactor_of` for its redactor, so that no setting of redaction is left out anywhere."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from tests.support.replaying import CHAT, calls, chat, exchange, live, user

import wiretape
from wiretape.adapters.live.model_calls import LiveTape
from wiretape.adapters.rerun.fork_tape import write_fork
from wiretape.adapters.rerun.live_model import LiveModel, Target
from wiretape.adapters.settings import Settings, redactor_of
from wiretape.adapters.update.staged_recording import StagedRecording
from wiretape.adapters.update.updated_tape import UpdatedTape
from wiretape.cli.main import main
from wiretape.model.http import Ended, Request
from wiretape.tape.editing.splice import Fresh
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.writing.writer import write_tape

HEADER = Header(wiretape=VERSION, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape 0")
WRITTEN = "a8F3k2L9x7Q4m1Zb"  # by a model, as an argument of a tool
BODY = chat(user("hi"), calls("login", f'{{"api_key": "{WRITTEN}"}}', "call_1"))
EXCHANGE = exchange(1, BODY, "ok")


def by_a_rerun(tape: Path, settings: Settings) -> None:
    with LiveModel(Target(), record=tape, settings=settings) as model:
        number = model._begin(Request("POST", CHAT, EXCHANGE.request.headers, None), orjson.dumps(BODY))
        model._record("end", number, Ended.COMPLETE)


def by_a_fork(tape: Path, settings: Settings) -> None:
    fork: Any = SimpleNamespace(entries=[EXCHANGE])
    write_fork(Tape(None, HEADER, ()), fork, tape, "a fork", settings)


def by_live_debugging(tape: Path, settings: Settings) -> None:
    with closing(LiveTape(tape.with_name("played.tape"), settings)) as beside:
        assert beside.begin(live(BODY)) is not None
    beside.path.rename(tape)


def by_an_updated_test(tape: Path, settings: Settings) -> None:
    UpdatedTape(Tape(None, HEADER, ()), [Fresh(EXCHANGE)], HEADER).write(tape, settings)


def by_a_merged_recording(tape: Path, settings: Settings) -> None:
    write_tape(tape, HEADER, [replace(EXCHANGE, request=exchange(1, chat(user("old")), "ok").request)])
    staged = StagedRecording(tape, goes_on=False)
    write_tape(staged.fresh, HEADER, [EXCHANGE])
    staged.merge_in_place(settings)


def by_a_merge_of_branches(tape: Path, settings: Settings) -> None:
    flag = str(settings.redact_tool_arguments).lower()
    Path("pyproject.toml").write_text(f"[tool.wiretape]\nredact_tool_arguments = {flag}\n")
    base, theirs = tape.with_name("base"), tape.with_name("theirs")
    write_tape(base, HEADER, [exchange(1, chat(user("old")), "ok")])
    write_tape(theirs, HEADER, [exchange(1, chat(user("old")), "ok"), replace(EXCHANGE, number=2, at=5)])
    shutil.copy(base, tape)
    assert main(["merge-driver", str(base), str(tape), str(theirs), "a.tape"]) == 0


PLACES = [
    by_a_rerun,
    by_a_fork,
    by_live_debugging,
    by_an_updated_test,
    by_a_merged_recording,
    by_a_merge_of_branches,
]


@pytest.mark.parametrize("redacts", [False, True], ids=["kept", "redacted"])
@pytest.mark.parametrize("write", PLACES, ids=lambda place: place.__name__)
def test_tool_arguments_are_redacted_if_the_settings_say_so(
    write: Callable[[Path, Settings], None], redacts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tape = tmp_path / "a.tape"
    write(tape, Settings(redact_tool_arguments=redacts))
    assert len(read_tape(tape).exchanges) >= 1
    assert (WRITTEN.encode() in tape.read_bytes()) is not redacts


def test_a_continued_tape_gives_new_secrets_higher_numbers(tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    tape.write_text('{"wiretape": 2, "note": "[redacted:api-key:7]"}\n')
    redactor = redactor_of(Settings(), continues=tape)
    assert redactor.text("sk-" + WRITTEN) == "[redacted:api-key:8]"
    assert redactor_of(Settings(), continues=tmp_path / "none.tape").text("sk-" + WRITTEN) == "[redacted:api-key:1]"


def test_no_other_module_makes_a_redactor() -> None:
    source = Path(wiretape.__file__).parent
    makers = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"(?<!Output)\bRedactor\(", path.read_text(encoding="utf-8"))
    }
    writers = {maker for maker in makers if not maker.startswith("analyze/lint/")}  # a linter looks, and writes nothing
    assert writers - {"tape/output_redactor.py"} == {"adapters/settings.py"}
