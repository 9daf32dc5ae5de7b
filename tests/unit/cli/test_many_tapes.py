"""Going over many tapes: what is searched, how much is in memory, and who sees how far it is."""

from __future__ import annotations

import gc
import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.support.views import header, wire_exchanges

from wiretape.cli import many_tapes
from wiretape.cli.main import main
from wiretape.cli.many_tapes import expand, one_by_one
from wiretape.errors import UsageError
from wiretape.model.call import ModelCall
from wiretape.tape.writing.writer import write_tape


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.tape", "deep/a.tape", "deep/notes.txt", ".hidden/c.tape"):
        path = Path("tapes", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".tape"):
            write_tape(path, header(), wire_exchanges())
        else:
            path.touch()


def test_a_directory_stands_for_the_tapes_below_it_each_once() -> None:
    assert expand(["tapes", "tapes/b.tape", "gone.tape", "-"]) == [
        "tapes/b.tape",
        "tapes/deep/a.tape",
        "gone.tape",
        "-",
    ]
    Path("empty").mkdir()
    with pytest.raises(UsageError, match="no tapes under empty; to make one: wiretape record"):
        expand(["empty"])


def test_one_tape_is_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def calls() -> int:
        gc.collect()
        return sum(type(one) is ModelCall for one in gc.get_objects())

    before, counted = calls(), []
    # It is asked for once for every tape, when that is open.
    monkeypatch.setattr("wiretape.adapters.prices.price_list", lambda started=None: counted.append(calls() - before))
    for number in range(2):
        shutil.copy("tapes/b.tape", f"tapes/{number}.tape")
    assert main(["stats", "tapes", "--json"]) == 0
    assert (counted, json.loads(capsys.readouterr()[0])["calls"]) == ([4] * 4 + [0], 16)


def test_a_bar_is_shown_only_to_somebody_who_watches_and_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def told(patience: float, stream: io.StringIO) -> str:
        monkeypatch.setattr(many_tapes, "PATIENCE", patience)
        monkeypatch.setattr(sys, "stderr", stream)
        assert list(one_by_one(["a", "b", "c"], str.upper)) == ["A", "B", "C"]
        return stream.getvalue()

    assert told(0, io.StringIO()) == ""
    assert told(3600, Terminal()).strip() == ""
    assert "%" in told(0, Terminal())
