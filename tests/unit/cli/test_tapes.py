"""Damaged tapes: commands that judge, write or replay refuse them; commands that look show the rest and exit with 1."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from wiretape.cli.main import main

NEEDS_RECORDER = pytest.mark.skipif(
    find_spec("mitmproxy") is None, reason="the recorder needs mitmproxy (Python 3.12 or later)"
)

CAPTURE = Path(__file__).parents[3] / "captures" / "route-two-tools.tape"
KEY = "sk-proj-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefgh"

Damages = Callable[[bytes], bytes]


def conflict(text: bytes) -> bytes:
    """Both branches added a document at the end."""
    *documents, last = text.strip().split(b"\n\n")
    theirs = last.replace(b'"at": ', b'"at": 1')
    return b"\n\n".join([*documents, b"<<<<<<< HEAD\n" + last + b"\n=======\n" + theirs + b"\n>>>>>>> other\n"])


def conflict_inside(text: bytes) -> bytes:
    """Both branches changed a line of the second document."""
    lines = text.split(b"\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(b'  "exchange": 2')) + 1
    lines[at : at + 1] = [b"<<<<<<< HEAD", lines[at], b"=======", b'  "at": 5,', b">>>>>>> other"]
    return b"\n".join(lines)


def broken_middle(text: bytes) -> bytes:
    return text.replace(b'"exchange": 2,', b'"exchange": 2', 1)


def broken_end(text: bytes) -> bytes:
    """The last document is whole, and not JSON: that is not what a killed recorder leaves."""
    start, _, end = text.rpartition(b'"ended": ')
    return start + b'"ended" ' + end


def missing_base(text: bytes) -> bytes:
    """The request of exchange 1 is missing: its answer and the bodies that build on it refer to it."""
    documents = text.split(b"\n\n")
    return b"\n\n".join([documents[0], *documents[2:]])


def not_utf8(text: bytes) -> bytes:
    at = text.index(b'"exchange": 2')
    return text[:at] + text[at:].replace(b'"content-type"', b'"content\xff-type"', 1)


DAMAGES: dict[str, tuple[Damages, str]] = {
    "conflict": (conflict, "git conflict markers: a merge was not finished"),
    "conflict inside": (conflict_inside, "git conflict markers: a merge was not finished"),
    "broken middle": (broken_middle, "expecting ',' delimiter"),
    "broken end": (broken_end, "expecting ':' delimiter"),
    "missing base": (missing_base, "exchange 1 has no request before this"),
    "not UTF-8": (not_utf8, "the text is not UTF-8"),
}

STRICT = (
    *("stats a.tape", "stats a.tape --each", "stats a.tape --by model", "check a.tape --max-calls 9", "lint a.tape"),
    *("diff a.tape good.tape", "diff good.tape a.tape", "redact a.tape", "redact a.tape -o new.tape"),
    *("merge a.tape good.tape -o new.tape", "cut a.tape --from 0 -o new.tape", "export a.tape -o new.har"),
    *("cache a.tape", "tools a.tape", "rerun a.tape", "fork a.tape 1 --say x -o new.tape", "replay a.tape -- true"),
    *("stats -", pytest.param("verify a.tape -- true", marks=NEEDS_RECORDER)),
)
LOOKING = ("show a.tape", "show a.tape --json", "debug a.tape --batch next", "doctor a.tape", "ls .")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.tape").write_bytes(CAPTURE.read_bytes())


def damage(name: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Write the damaged tape, also to standard input."""
    made = DAMAGES[name][0](CAPTURE.read_bytes())
    Path("a.tape").write_bytes(made)
    stdin = io.TextIOWrapper(io.BytesIO(made))
    monkeypatch.setattr(sys, "stdin", stdin)
    return made


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("words", STRICT)
def test_commands_that_judge_write_or_replay_refuse_a_damaged_tape(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made = damage(name, monkeypatch)
    code = main(words.split())
    out, err = capfd.readouterr()
    assert code == 2, err
    assert DAMAGES[name][1] in out + err
    assert Path("a.tape").read_bytes() == made
    assert {path.name for path in Path().iterdir()} == {"a.tape", "good.tape"}


@NEEDS_RECORDER
@pytest.mark.parametrize("words", ["record --append -o a.tape -- true", "record --update a.tape -- true"])
def test_recording_does_not_continue_a_damaged_tape(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = damage("broken middle", monkeypatch)
    command = Path(sys.executable).with_name("wiretape")  # mitmproxy warns when it is imported
    done = subprocess.run([command, *words.split()], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "expecting ',' delimiter" in done.stderr
    assert Path("a.tape").read_bytes() == made


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("words", LOOKING)
def test_commands_that_look_show_the_rest_and_exit_with_1(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    damage(name, monkeypatch)
    code = main(words.split())
    out, err = capfd.readouterr()
    assert code == 1, err
    assert out
    assert DAMAGES[name][1] in " ".join((out + err).split())


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize(
    "words", ["stats a.tape", "lint a.tape --fail-on never", "merge a.tape good.tape -o new.tape", "redact a.tape"]
)
def test_partial_accepts_the_rest_with_a_warning(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    damage(name, monkeypatch)
    assert main([*words.split(), "--partial"]) == 0
    assert "wiretape: warning: a.tape:" in capfd.readouterr().err


def test_redact_partial_leaves_no_secret_in_the_part_that_cannot_be_read(capfd: pytest.CaptureFixture[str]) -> None:
    text = broken_middle(CAPTURE.read_bytes()).replace(b'"exchange": 2', b'"exchange": 2, "k": "%b"' % KEY.encode(), 1)
    Path("a.tape").write_bytes(text)
    assert KEY.encode() in text
    assert main(["redact", "a.tape", "--partial"]) == 0
    assert KEY not in Path("a.tape").read_text(encoding="utf-8")
    assert main(["stats", "a.tape"]) == 0
    capfd.readouterr()


@pytest.mark.parametrize(("words", "code"), [("stats .", 2), ("lint . --fail-on never", 2), ("ls", 1)])
def test_a_report_on_a_directory_finishes_names_the_bad_tape_and_fails(
    words: str, code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    damage("broken middle", monkeypatch)
    assert main(words.split()) == code
    out, err = capfd.readouterr()
    assert "a.tape" in out + err
    assert "expecting ',' delimiter" in " ".join((out + err).split())
    if words == "stats .":
        assert "good.tape" in out


def test_the_commands_that_end_a_conflict_are_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    damage("conflict", monkeypatch)
    assert main(["redact", "a.tape"]) == 2
    err = capfd.readouterr().err
    assert err.splitlines() == [
        f"wiretape: a.tape:{err.split(':')[2]}: git conflict markers: a merge was not finished",
        "  to keep the calls of both branches: wiretape merge-driver --install && git checkout --merge a.tape",
        "  to keep one branch's tape: git checkout --ours a.tape (or --theirs); then git add a.tape",
    ]


def test_a_conflict_in_the_header_is_named_and_the_rest_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    lines = CAPTURE.read_bytes().split(b"\n")
    lines[3:4] = [b"<<<<<<< HEAD", lines[3], b"=======", lines[3].replace(b"0", b"1"), b">>>>>>> other"]
    Path("a.tape").write_bytes(b"\n".join(lines))
    assert main(["stats", "a.tape"]) == 2
    assert "git conflict markers" in capfd.readouterr().err
    assert main(["show", "a.tape", "--json"]) == 1
    assert len(json.loads(capfd.readouterr().out)["exchanges"]) == 3


def test_a_torn_end_is_still_read_with_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    Path("a.tape").write_bytes(CAPTURE.read_bytes()[:-40])
    for words in ("stats a.tape", "show a.tape", "redact a.tape -o new.tape"):
        assert main(words.split()) == 0
        assert "the last document is cut off and was left out" in capfd.readouterr().err


def test_a_damaged_journal_is_damage(capfd: pytest.CaptureFixture[str]) -> None:
    Path("a.tape").write_bytes(CAPTURE.read_bytes())
    journal = Path("a.tape.journal")
    journal.write_bytes(b'journal 0 0 15\n{"header": null}\nrubbish that is not a record\nsent 1 5 0\n\n')
    assert main(["stats", "a.tape"]) == 2
    assert "a.tape.journal: the record at byte 0 cannot be read" in capfd.readouterr().err
    assert main(["show", "a.tape"]) == 1
    journal.unlink()
    journal.mkdir()
    assert main(["stats", "a.tape"]) == 2
    assert "a.tape.journal: cannot be read: Is a directory" in capfd.readouterr().err
