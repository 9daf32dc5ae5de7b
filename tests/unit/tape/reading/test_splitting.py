"""The text of a tape, split into documents: damage costs the documents that it is in, and no others."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.errors import NotATape, TapeDamaged, TapeError
from wiretape.tape.reading.splitting import split_documents, split_text

TAPE = Path("some.tape")
HEADER = {"wiretape": 1, "started": "2026-03-01T12:00:00Z", "recorder": "w"}


def document(number: int) -> dict[str, Any]:
    return {"exchange": number, "at": number, "request": {"method": "POST", "url": "u", "headers": {"a": "天气"}}}


def pretty(*documents: Any) -> str:
    return "\n".join(json.dumps(one, indent=2, ensure_ascii=False) + "\n" for one in documents)


def numbers(text: str | bytes) -> list[int]:
    pieces = split_text(text.encode() if isinstance(text, str) else text, TAPE).pieces
    return [piece.value["exchange"] for piece in pieces if "exchange" in piece.value]


@given(st.integers(1, 4), st.data())
def test_a_broken_document_costs_only_itself(which: int, data: st.DataObject) -> None:
    parts = [pretty(document(n)) for n in range(1, 6)]
    broken = parts[which]
    at = data.draw(st.integers(1, len(broken.rstrip()) - 2))
    parts[which] = broken[:at] + data.draw(st.sampled_from(["\x00", "}", "]", '"', "\n\n", "NaN", "{"])) + broken[at:]
    split = split_text((pretty(HEADER) + "\n" + "\n".join(parts)).encode(), TAPE)
    found = [piece.value.get("exchange") for piece in split.pieces if isinstance(piece.value, dict)]
    assert [number for number in found if number not in (which + 1, None)] == [n for n in range(1, 6) if n != which + 1]
    if which + 1 not in found:
        assert split.damage or split.torn or '"exchange"' not in parts[which]


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.99])
def test_a_text_that_ends_in_a_document_is_torn(cut: float) -> None:
    last = json.dumps(document(2), indent=2, ensure_ascii=False).encode()
    text = (pretty(HEADER, document(1)) + "\n").encode() + last[: int(len(last) * cut)]
    split = split_text(text, TAPE)
    assert split.torn == "some.tape:19: the last document is cut off and was left out"
    assert split.damage == []
    assert numbers(text) == [1]


@pytest.mark.parametrize("end", ["tru", "fals", "-", "1.", "1e", '"x', '"\\u12', '"\\', "[1,", "{", '{"a"', '{"a":'])
def test_every_beginning_of_a_value_is_torn(end: str) -> None:
    split = split_text((pretty(HEADER) + '\n{"exchange": 1, "at": ' + end).encode(), TAPE)
    assert split.torn is not None
    assert split.damage == []


@pytest.mark.parametrize(
    "end", ["}", "1]}", "1 2}", "tru}", '"a\nb"}', "NaN}", '"\\ud800"}', "1e999}", "9" * 5000 + "}", "\x00}"]
)
def test_a_last_document_that_is_whole_and_wrong_is_damage(end: str) -> None:
    text = pretty(HEADER) + '\n{"exchange": 1, "at": ' + end + "\n"
    split = split_text(text.encode(), TAPE)
    assert split.torn is None
    assert len(split.damage) == 1
    with pytest.raises(TapeDamaged, match=r"some\.tape:\d+: "):
        split_documents(text.encode(), TAPE)


def test_nuls_that_a_crash_left_behind_the_end_are_not_damage() -> None:
    split = split_text(pretty(HEADER, document(1)).encode() + b'\n{"exchange": 2, "at' + b"\0" * 500, TAPE)
    assert (len(split.pieces), split.damage) == (2, [])
    assert split.torn is not None


def test_conflict_markers_around_documents_keep_both_sides() -> None:
    parts = [pretty(HEADER, document(1)), "<<<<<<< HEAD", pretty(document(2)), "=======", pretty(document(3))]
    text = "\n".join([*parts, ">>>>>>> other"])
    split = split_text(text.encode(), TAPE)
    assert [one.conflict for one in split.damage] == [True, True, True]
    assert numbers(text) == [1, 2, 3]
    with pytest.raises(TapeDamaged, match=r"some\.tape:19: git conflict markers"):
        split.whole()


@pytest.mark.parametrize("base", [[], ["||||||| 1a2b", '  "at": 7,']])
def test_conflict_markers_inside_a_document_keep_this_branchs_version(base: list[str]) -> None:
    inside = ["<<<<<<< HEAD", '  "at": 2,', *base, "=======", '  "at": 3,', ">>>>>>> other"]
    text = pretty(HEADER, document(1), document(2), document(3)).replace('  "at": 2,', "\n".join(inside))
    split = split_text(text.encode(), TAPE)
    assert [piece.value["at"] for piece in split.pieces[1:]] == [1, 2, 3]
    assert len(split.damage) == 1


def test_an_object_that_looks_like_a_document_inside_one_is_no_damage() -> None:
    inside = document(1) | {"list": [{"exchange": 7, "at": 1}, {"at": 2}]}
    text = json.dumps(HEADER) + "\n\n" + json.dumps(inside, indent=0) + "\n\n" + pretty(document(2))
    split = split_text(text.encode(), TAPE)
    assert split.damage == []
    assert numbers(text.replace("\n\n", "\r\n\r\n")) == [1, 2]


def test_a_text_in_a_body_that_looks_like_a_marker_is_none() -> None:
    one = document(1) | {"note": "<<<<<<< HEAD\n=======\n>>>>>>> other"}
    assert split_text(pretty(HEADER, one).encode(), TAPE).damage == []


@pytest.mark.parametrize("depth", [254, 255, 900, 1023, 1025, 100_000])
@pytest.mark.parametrize("spelling", ["compact", "pretty"])
def test_nesting_that_cannot_be_written_is_damage(depth: int, spelling: str) -> None:
    inner = depth - 1
    deep = '{"exchange": 1, "a": ' + "[" * inner + "]" * inner + "}"
    text = pretty(HEADER) + "\n" + deep + "\n\n" + (pretty(document(2)) if spelling == "pretty" else "{}")
    split = split_text(text.encode(), TAPE)
    assert len(split.damage) == (depth > 254)
    if depth > 254:
        assert "nested" in str(split.damage[0]) or "depth" in str(split.damage[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ['{"a": [', "{", '{"exchange": 1, "b": [[', '{"exchange": 1}}', "<<<<<<< HEAD", '{"exchange": 1, "a": "']
)
def test_reading_damage_takes_time_linear_in_the_text(line: str) -> None:
    def seconds(count: int) -> float:
        text = (pretty(HEADER) + "\n" + f"{line}\n" * count).encode()
        best = 9.0
        for _ in range(3):
            started = time.process_time()
            split_text(text, TAPE)
            best = min(best, time.process_time() - started)
        return best

    assert seconds(8000) < 8 * seconds(2000) + 0.02


def test_documents_on_one_line_take_time_linear_in_the_text() -> None:
    def seconds(count: int) -> float:
        text = (json.dumps(HEADER) + json.dumps(document(1)) * count).encode()
        started = time.process_time()
        assert len(split_text(text, TAPE).pieces) == count + 1
        return time.process_time() - started

    assert seconds(8000) < 8 * seconds(2000) + 0.02


def test_text_that_is_no_tape_is_refused() -> None:
    for text in (b"hello", b"\xff\xfe{", b"[1, 2", b'{"a'):
        with pytest.raises(NotATape):
            split_text(text, TAPE)
    with pytest.raises(TapeError, match="the header is cut off"):
        split_text(b'{"wiretape": 1, "star', TAPE)
