"""`wiretape doctor`: what it prints, and when it exits with 1."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.views import header, wire_exchanges

from wiretape.cli.main import main
from wiretape.model.http import Exchange, Headers, JsonBody, Request, Response
from wiretape.tape.writing.writer import write_tape

OTHER = Exchange(
    1,
    0,
    Request("POST", "https://api.odd.example/rpc", Headers([("content-type", "application/proto")])),
    Response(200, Headers(), 5, JsonBody({"ok": True})),
    "complete",
    9,
)


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's own: no proxy, no base URL, a state directory of its own."""
    import os

    for name in list(os.environ):
        if name.upper().endswith(("_PROXY", "_BASE_URL", "_API_BASE")) or name in ("COLUMNS", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["doctor", *argv])
    return code, capsys.readouterr().out


def test_on_a_sound_machine_nothing_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys)
    assert code == 0
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert [line for line in lines if line.startswith("fail")] == []
    for what in ("Python", "recorder", "authority", "trust bundle", "ports", "proxy", "base URL", "tapes", "libraries"):
        assert any(line[6:].startswith(what) for line in lines), what


def test_what_is_broken_is_exit_code_1_and_has_a_next_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    code, out = run(capsys)
    assert code == 1
    assert "fail  proxy" in out
    assert "→ unset HTTPS_PROXY, or start that proxy" in out
    assert out.rstrip().splitlines()[-1].startswith("1 broken")


def test_a_command_is_told_what_would_be_set_and_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=https://llm.corp.example/v1\n")
    code, out = run(capsys, "--", sys.executable, "agent.py", "--flag")
    assert code == 0
    assert "a Python program" in out
    assert "NODE_USE_ENV_PROXY=1" in out
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:PORT/api.anthropic.com" in out
    assert "# the provider's default, routed through wiretape" in out
    assert "  WIRETAPE_TOOLS=record+http://127.0.0.1:PORT/tool:local/\n" in out
    _, _, variables = out.partition("would be run with")
    assert "  OPENAI_BASE_URL=" not in variables
    assert "read by the program in a" in " ".join(out.split())  # where lines break depends on the path before it
    assert f"Python {'.'.join(map(str, sys.version_info[:3]))}" in out


def test_a_preset_that_was_not_seen_running_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "goose").write_text("#!/bin/sh\n")
    (tmp_path / "goose").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    code, out = run(capsys, "goose", "run", "-t", "x")
    assert code == 0
    assert "warn  preset" in out
    assert "not tested with" in out
    assert "OPENAI_HOST=http://127.0.0.1:PORT/api.openai.com" in out


def test_a_long_command_is_told_in_whole_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out = run(capsys, "--", str(tmp_path / "no-such-agent"), *["--a-long-option"] * 5)
    assert [line for line in out.splitlines() if line != line.rstrip()] == []
    assert "would be run with" in " ".join(out.split())


def test_a_damaged_authority_is_broken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    authority = tmp_path / "state" / "wiretape"
    authority.mkdir(parents=True)
    (authority / "mitmproxy-ca.pem").write_text("no key")
    (authority / "mitmproxy-ca-cert.pem").write_text("no certificate")
    code, out = run(capsys)
    assert code == 1
    assert "fail  authority" in out
    assert "→tomakeanewone:wiretapedoctor--remove-ca" in "".join(out.split())  # wherever lines break
    code, out = run(capsys, "--remove-ca")
    assert (code, out.splitlines()[0]) == (0, f"removed the certificate authority in {authority} (2 files)")
    assert "none yet" in run(capsys)[1]


def test_a_command_that_does_not_exist_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "no-such-agent")
    assert code == 1
    assert "fail  program" in out


def test_json_carries_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "--json", "--", sys.executable, "agent.py")
    document = json.loads(out)
    assert code == 0
    assert {check["level"] for check in document["checks"]} <= {"ok", "warn"}
    sets = {one["name"]: one for one in document["sets"]}
    assert sets["HTTPS_PROXY"]["value"] == "http://127.0.0.1:PORT"
    assert all(one["why"] for one in document["sets"])


def test_a_tape_with_calls_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    write_tape("good.tape", header(), wire_exchanges())
    code, out = run(capsys, "good.tape")
    assert code == 0
    assert "model calls in" in out


def test_an_empty_tape_says_what_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    write_tape("empty.tape", header(), [])
    code, out = run(capsys, "empty.tape")
    assert code == 1
    assert "no model call in 0 exchanges on empty.tape" in out
    assert "trust_env=True" in out


def test_a_tape_without_calls_names_what_was_let_through_and_what_no_format_knows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lost = replace(OTHER, number=2, request=Request("POST", "https://api.gone.example/v1/x"), response=None)
    lost = replace(lost, ended="upstream_unreachable")
    bypassing = header().model_copy(update={"bypassed": ["llm.example"]})
    write_tape("odd.tape", bypassing, [OTHER, lost])
    code, out = run(capsys, "odd.tape")
    assert code == 1
    assert "warn  let through" in out
    assert "wiretape record --host llm.example" in out
    assert "POST api.odd.example/rpc (application/proto) → 200" in out
    assert "to see it: wiretape show odd.tape x1" in out
    assert "api.gone.example could not be reached (1 time)" in out


def test_a_file_that_is_no_tape_is_said_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bad.tape").write_text("hello")
    assert main(["doctor", "bad.tape"]) == 2
    assert "bad.tape" in capsys.readouterr().err
