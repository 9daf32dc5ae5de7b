"""The commands `wiretape import` and `wiretape export`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.importing import har_entry, har_file

from wiretape.adapters.importers.importing import FORMATS
from wiretape.cli.integrate import import_
from wiretape.model.http import JsonBody
from wiretape.tape.reading.reader import read_tape

CASSETTE = """\
interactions:
- request: {method: POST, uri: "https://api.example.com/v1/chat/completions", body: '{"model":"m","messages":[]}',
    headers: {authorization: [Bearer sk-live-0123456789abcdefghij]}}
  response: {status: {code: 200}, headers: {content-type: [application/json]}, body: {string: '{"id":"c"}'}}
- request_sample: {}
version: 1
"""


def wiretape(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "wiretape", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, check=False)


def test_several_files_make_one_tape(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CASSETTE, encoding="utf-8")
    (tmp_path / "b.har").write_text(har_file(har_entry({"text": "{}"})), encoding="utf-8")
    out = tmp_path / "out.tape"
    done = wiretape("import", tmp_path / "a.yaml", tmp_path / "b.har", "-o", out)
    assert done.returncode == 0
    assert done.stdout == b""
    assert done.stderr.decode().splitlines() == [
        f"wiretape: 2 exchanges of 2 files written to {out}",
        "wiretape: 1 could not be taken:",
        "  1 x is not an HTTP exchange (it holds request_sample)",
        f"      {tmp_path / 'a.yaml'} entry 2",
    ]
    tape = read_tape(out)
    assert tape.header.provenance == "imported from vcrpy: a.yaml; HAR: b.har"
    assert [exchange.number for exchange in tape.exchanges] == [1, 2]
    assert tape.exchanges[0].request.body == JsonBody({"model": "m", "messages": []})
    assert "sk-live" not in out.read_text(encoding="utf-8")
    assert tape.header.redacted == ["authorization"]


def test_a_directory_means_its_files_also_with_json(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "a.yaml").write_text(CASSETTE, encoding="utf-8")
    (tmp_path / "in" / "README.md").write_text("# cassettes", encoding="utf-8")
    (tmp_path / "in" / ".hidden").write_text("x", encoding="utf-8")
    out = tmp_path / "out.tape"
    done = wiretape("import", tmp_path / "in", "-o", out, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "tape": str(out),
        "files": 2,
        "exchanges": 1,
        "containers": {"vcrpy": 1},
        "refused": [
            {
                "file": str(tmp_path / "in" / "README.md"),
                "entry": None,
                "reason": "is not a recording in a known format",
            },
            {
                "file": str(tmp_path / "in" / "deep" / "a.yaml"),
                "entry": 2,
                "reason": "is not an HTTP exchange (it holds request_sample)",
            },
        ],
    }


def test_nothing_taken_is_a_failure_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    done = wiretape("import", tmp_path / "a.txt", tmp_path / "gone.har", "-o", tmp_path / "out.tape")
    assert done.returncode == 2
    said = done.stderr.decode()
    assert "a.txt" in said
    assert "cannot be read: No such file or directory" in said
    assert "nothing could be taken" in said
    assert not (tmp_path / "out.tape").exists()


def test_a_tape_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CASSETTE, encoding="utf-8")
    out = tmp_path / "out.tape"
    out.write_text("mine", encoding="utf-8")
    assert wiretape("import", tmp_path / "a.yaml", "-o", out).returncode == 2
    assert out.read_text(encoding="utf-8") == "mine"
    assert wiretape("import", tmp_path / "a.yaml", "-o", out, "--force").returncode == 0
    assert len(read_tape(out).exchanges) == 1


@pytest.mark.slow
def test_export_and_import_again(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CASSETTE, encoding="utf-8")
    tape, har, again = tmp_path / "a.tape", tmp_path / "a.har", tmp_path / "again.tape"
    assert wiretape("import", tmp_path / "a.yaml", "-o", tape).returncode == 0
    done = wiretape("export", tape, "--har", "-o", har)
    assert done.returncode == 0
    assert done.stderr.decode() == f"wiretape: 1 exchange written to {har}\n"
    assert wiretape("export", tape, "--har", "-o", har).returncode == 2  # it is there
    assert wiretape("export", "-", "--har", "-o", "-", stdin=tape.read_bytes()).stdout == har.read_bytes()
    assert wiretape("import", har, "-o", again).returncode == 0
    whole, back = read_tape(tape), read_tape(again)
    assert back.exchanges == whole.exchanges
    assert back.header.started == whole.header.started


def test_export_writes_har_by_default_and_accepts_both_names_of_out(tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    assert wiretape("import", _har(tmp_path), "--out", tape).returncode == 0
    written = []
    for number, option in enumerate(("-o", "--output", "--out")):
        har = tmp_path / f"{number}.har"
        done = wiretape("export", tape, option, har)
        assert done.returncode == 0, done.stderr
        written.append(har.read_bytes())
    assert written == [wiretape("export", tape, "--har", "-o", "-").stdout] * 3


def _har(directory: Path) -> Path:
    path = directory / "in.har"
    path.write_text(har_file(har_entry({"text": "{}"})), encoding="utf-8")
    return path


def test_the_command_knows_every_importer() -> None:
    assert import_.FORMATS == FORMATS
