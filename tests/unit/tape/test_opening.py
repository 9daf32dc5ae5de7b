"""Continuing a tape: what a crash or an editor left is mended first."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from tests.support.taping import Taping

from wiretape.errors import TapeError
from wiretape.model.http import Ended, body_bytes
from wiretape.tape.reader import read_tape


def recorded(path: Path) -> None:
    taping = Taping(path)
    for number in range(3):
        taping.call(orjson.dumps({"n": number, "pad": "x" * 300}), [b'{"ok":%d}' % number])
    taping.recorder.close()


def continued(path: Path, torn: bool = False) -> None:
    taping = Taping(path, append=True)
    taping.call(b'{"n":"new"}', [b"{}"])
    assert ["cut off" in trouble for trouble in taping.recorder.close().troubles] == [True] * torn


def check(path: Path, calls: int) -> None:
    tape = read_tape(path)
    assert tape.warnings == ()
    assert [exchange.number for exchange in tape.exchanges] == list(range(1, calls + 1))
    assert body_bytes(tape.exchanges[-1].request.body) == b'{"n":"new"}'


@pytest.mark.parametrize("name", ["run.tape", "run.tape.zst"])
def test_a_tape_is_continued(tmp_path: Path, name: str) -> None:
    if name.endswith(".zst"):
        pytest.importorskip("backports.zstd", reason="needs the extra zstd")
    recorded(tmp_path / name)
    continued(tmp_path / name)
    check(tmp_path / name, 4)


def test_continuing_leaves_what_is_there_untouched(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    before = path.read_bytes()
    continued(path)
    assert path.read_bytes().startswith(before + b"\n{")


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip(),
        lambda text: text + "\n\n\n",
        lambda text: "".join(orjson.dumps(orjson.loads(d)).decode() + "\n" for d in text.split("\n\n")),
    ],
    ids=["CRLF", "no last newline", "more newlines", "JSON Lines"],
)
def test_a_tape_that_an_editor_saved_otherwise_is_continued(tmp_path: Path, edit: object) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    assert callable(edit)
    path.write_bytes(edit(path.read_text()).encode())
    continued(path)
    check(path, 4)


@pytest.mark.parametrize("lost", [1, 40, 120])
def test_a_torn_last_document_is_cut_off(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    path.write_bytes(path.read_bytes()[:-lost].rstrip(b"}\n") if lost == 1 else path.read_bytes()[:-lost])
    continued(path, torn=True)
    tape = read_tape(path)
    assert tape.warnings == ()
    assert [x.number for x in tape.exchanges] == [1, 2, 3, 4]
    assert tape.exchanges[2].ended is Ended.RECORDER_STOPPED  # its response was torn
    assert tape.exchanges[2].response is None


def test_a_broken_tape_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    text = path.read_text().replace('"method": "POST"', '"method": POST', 1)
    path.write_text(text)
    with pytest.raises(TapeError, match=r"run\.tape:"):
        Taping(path, append=True)
    assert path.read_text() == text


def test_a_missing_tape_is_begun(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "new.tape"
    taping = Taping(path, append=True)
    taping.call(b'{"n":"new"}', [b"{}"])
    taping.recorder.close()
    check(path, 1)


def test_without_the_library_a_compressed_tape_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wiretape.tape import storage

    monkeypatch.setattr(storage, "zstd_library", lambda: None)
    with pytest.raises(TapeError, match=r"pip install 'wiretape\[zstd\]'"):
        Taping(tmp_path / "run.tape.zst")
    (tmp_path / "old.tape.zst").write_bytes(b"x")
    with pytest.raises(TapeError, match=r"pip install 'wiretape\[zstd\]'"):
        read_tape(tmp_path / "old.tape.zst")


def test_a_header_that_was_edited_by_hand_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    header, _, rest = path.read_text().partition("\n\n")
    edited = {**orjson.loads(header), "note": "mine"}
    path.write_text(orjson.dumps(edited).decode() + "\n\n" + rest)
    taping = Taping(path, append=True)
    taping.recorder.bypassed("pypi.example")
    taping.call(b'{"n":"new"}', [b"{}"])
    taping.recorder.close()
    check(path, 4)
    assert (read_tape(path).header.note, read_tape(path).header.bypassed) == ("mine", ["pypi.example"])


def test_what_a_torn_document_held_is_kept_and_said(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    text = path.read_bytes()
    path.write_bytes(text[:-30])
    torn = text[:-30].split(b"\n\n")[-1]
    taping = Taping(path, append=True)
    assert len(taping.troubles) == 1
    assert "the last document is cut off" in taping.troubles[0]
    assert str(tmp_path / "run.tape.torn") in taping.troubles[0]
    summary = taping.recorder.close()
    assert not summary.incomplete
    assert (tmp_path / "run.tape.torn").read_bytes() == torn + b"\n"
    assert [x.ended for x in read_tape(path).exchanges] == [Ended.COMPLETE, Ended.COMPLETE, Ended.RECORDER_STOPPED]
