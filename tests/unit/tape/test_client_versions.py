from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.taping import STARTED, Taping

from wiretape.model.http import Exchange, Headers, Request
from wiretape.tape.client_versions import ClientVersions, united, versions_of
from wiretape.tape.editing.edit import cut_tape, merge_tapes, redact_tape
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.redaction import Redactor
from wiretape.tape.storage import journal_path

SDK = [
    ("User-Agent", "OpenAI/Python 3.57.0"),
    ("X-Stainless-Package-Version", "3.57.0"),
    ("X-Stainless-Lang", "python"),
    ("X-Stainless-Retry-Count", "0"),
    ("Accept", "application/json"),
]
TOLD = {"user-agent": "OpenAI/Python 3.57.0", "x-stainless-package-version": "3.57.0", "x-stainless-lang": "python"}


def test_the_header_says_which_versions_spoke_on_the_wire(tmp_path: Path) -> None:
    taping = Taping(tmp_path / "a.tape")
    taping.call(b'{"model":"m"}', [b"{}"], request_headers=SDK)
    taping.call(b'{"model":"m"}', [b"{}"], request_headers=SDK)
    taping.recorder.close()
    assert read_tape(tmp_path / "a.tape").header.client == TOLD


def test_what_a_server_calls_itself_is_no_client(tmp_path: Path) -> None:
    taping = Taping(tmp_path / "a.tape")
    taping.call(b"{}", [b"{}"], headers=[("version", "server-9"), ("openai-version", "2020-10-01")])
    taping.recorder.close()
    assert read_tape(tmp_path / "a.tape").header.client is None


def test_several_versions_stand_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    taping = Taping(tmp_path / "a.tape")
    for version in ("2", "1", "2"):
        taping.call(b"{}", [b"{}"], request_headers=[("user-agent", f"codex/{version}"), ("originator", "codex_exec")])
    taping.recorder.close()
    assert read_tape(tmp_path / "a.tape").header.client == {
        "user-agent": ["codex/2", "codex/1"],
        "originator": "codex_exec",
    }


def test_a_recording_that_goes_on_adds_to_what_the_header_says(tmp_path: Path) -> None:
    for version, append in (("1", False), ("2", True)):
        taping = Taping(tmp_path / "a.tape", append=append)
        taping.call(b"{}", [b"{}"], request_headers=[("user-agent", f"codex/{version}")])
        taping.recorder.close()
    assert read_tape(tmp_path / "a.tape").header.client == {"user-agent": ["codex/1", "codex/2"]}


def test_a_crash_keeps_what_the_journal_has_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    taping = Taping(path)
    taping.call(b"{}", [b"{}"], request_headers=SDK)
    left = journal_path(path).read_bytes()
    taping.recorder.close()
    lines = path.read_bytes()
    raw = json.dumps({"wiretape": 1, "started": STARTED.isoformat(), "recorder": "wiretape 0"}).encode()
    path.write_bytes(raw + lines[lines.index(b"\n\n") :])
    journal_path(path).write_bytes(left)
    Taping(path, append=True).recorder.close()
    assert read_tape(path).header.client == TOLD


def test_a_secret_in_a_version_is_replaced_also_when_it_is_known_only_later(tmp_path: Path) -> None:
    key = "Zq8Lw3Xv9Rt5Yb2Nm7Kc4Hd6"
    taping = Taping(tmp_path / "a.tape")
    taping.call(b"{}", [b"{}"], request_headers=[("user-agent", f"agent/1 ({key})")])
    taping.call(b"{}", [b"{}"], request_headers=[("authorization", f"Bearer {key}")])
    taping.recorder.close()
    assert key.encode() not in (tmp_path / "a.tape").read_bytes()
    client = read_tape(tmp_path / "a.tape").header.client
    assert client is not None
    assert str(client["user-agent"]).startswith("agent/1 ([redacted")


def test_a_version_that_is_another_at_every_call_does_not_fill_the_header() -> None:
    versions = ClientVersions()
    assert versions.note([("user-agent", f"agent/{number}") for number in range(100)])
    assert not versions.note([("user-agent", "agent/100")])
    told = versions.values
    assert told is not None
    assert len(told["user-agent"]) == 8


def test_tapes_that_do_not_say_it_are_read_and_asked(tmp_path: Path) -> None:
    old = tmp_path / "old.tape"
    old.write_text('{"wiretape": 1, "started": "2026-01-01T00:00:00Z", "recorder": "wiretape 0"}\n')
    assert read_tape(old).header.client is None
    exchange = Exchange(1, 0, Request("POST", "https://a/", Headers([("user-agent", "curl/8"), ("accept", "*")])))
    assert versions_of([exchange]) == {"user-agent": "curl/8"}


def test_edits_keep_it(tmp_path: Path) -> None:
    for name, version in (("a", "1"), ("b", "2")):
        taping = Taping(tmp_path / f"{name}.tape")
        taping.call(b"{}", [b"{}"], request_headers=[("user-agent", f"agent/{version}")])
        taping.recorder.close()
    a, b = read_tape(tmp_path / "a.tape"), read_tape(tmp_path / "b.tape")
    merge_tapes([a, b], tmp_path / "both.tape", "wiretape", Redactor())
    cut_tape(a, tmp_path / "cut.tape", lambda exchange: True, Redactor())
    redact_tape(tmp_path / "a.tape", tmp_path / "clean.tape", Redactor(["agent/1"]))
    clients = [read_tape(tmp_path / f"{name}.tape").header.client for name in ("both", "cut", "clean")]
    assert clients[:2] == [{"user-agent": ["agent/1", "agent/2"]}, {"user-agent": "agent/1"}]
    assert clients[2] is not None
    assert "agent/1" not in clients[2]["user-agent"]


def test_headers_of_nothing_say_nothing() -> None:
    assert united([None, None]) is None


def test_a_header_with_a_wrong_value_is_refused() -> None:
    with pytest.raises(ValueError, match="client"):
        Header.model_validate({"started": "2026-01-01T00:00:00Z", "recorder": "w", "client": {"user-agent": 3}})
