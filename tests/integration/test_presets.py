"""Programs that read base URLs as well-known clients do, recorded and replayed without manual settings.

The clients themselves are run by `make clients`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.upstream import Upstream

from wiretape.tape.reading.reader import read_tape

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
ASK = """
import httpx
body = {"model": "m", "messages": [{"role": "user", "content": "How is the weather?"}]}
print(httpx.post(base + "/chat/completions", json=body).json()["choices"][0]["message"]["content"])
"""
CODEX = """
import os, pathlib, sys, tomllib
config = tomllib.loads(pathlib.Path(os.environ["CODEX_HOME"], "config.toml").read_text())
base = config["model_providers"]["corp"]["base_url"]
words = sys.argv[1:]
while words[0] == "-c":
    key, value = words[1].split("=", 1)
    if key == "model_providers.corp.base_url":
        base = tomllib.loads("x = " + value)["x"]
    words = words[2:]
assert words == ["exec", "hello"], words
"""
OPENCODE = """
import json, os, pathlib
config = json.loads(pathlib.Path("opencode.json").read_text())
content = json.loads(os.environ.get("OPENCODE_CONFIG_CONTENT", "{}"))
base = config["provider"]["corp"]["options"]["baseURL"]
base = content.get("provider", {}).get("corp", {}).get("options", {}).get("baseURL", base)
"""
PI = """
import json, os, pathlib
models = json.loads(pathlib.Path(os.environ["PI_CODING_AGENT_DIR"], "models.json").read_text())
assert pathlib.Path(os.environ["PI_CODING_AGENT_DIR"], "auth.json").exists()
base = models["providers"]["corp"]["baseUrl"]
"""
DOTENV = """
import os, pathlib
name, _, value = pathlib.Path(".env").read_text().strip().partition("=")
base = os.environ.get(name, value)  # as every reader of such files does
"""


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    named = ("_PROXY", "_BASE_URL", "_API_BASE")
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(named)}
    (tmp_path / "bin").mkdir()
    return {
        **kept,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{kept['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "CODEX_HOME": str(tmp_path / "codex"),
        "PI_CODING_AGENT_DIR": str(tmp_path / "pi"),
    }


def program(tmp_path: Path, name: str, code: str) -> None:
    path = tmp_path / "bin" / name
    path.write_text(f"#!{sys.executable}\n{code}{ASK}")
    path.chmod(0o755)


def wiretape(tmp_path: Path, environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wiretape", *words]
    return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60)


def check(tmp_path: Path, environ: dict[str, str], upstream: Upstream, *command: str) -> str:
    """Record the program; replay it without its upstream. What `replay -v` said."""
    recorded = wiretape(tmp_path, environ, "record", "-o", "x.tape", "--", *command)
    assert recorded.returncode == 0, recorded.stderr
    assert [one.request.url for one in read_tape(tmp_path / "x.tape").exchanges] == [
        f"{upstream.url}/v1/chat/completions"
    ]
    reached = len(upstream.seen)
    replayed = wiretape(tmp_path, environ, "replay", "-v", "x.tape", "--", *command)
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout != ""
    assert "played      1 call (1 exact)" in replayed.stderr
    assert len(upstream.seen) == reached, "the replay reached the upstream"
    return replayed.stderr


def test_codex_is_routed_by_flags(tmp_path: Path, environ: dict[str, str], upstream: Upstream) -> None:
    program(tmp_path, "codex", CODEX)
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex" / "config.toml").write_text(f'[model_providers.corp]\nbase_url = "{upstream.url}/v1"\n')
    said = check(tmp_path, environ, upstream, "codex", "exec", "hello")
    assert "wiretape: runs Codex; for this run only it sets" in said
    assert '-c model_providers.corp.base_url="http://127.0.0.1:' in said


def test_opencode_is_routed_by_a_variable(tmp_path: Path, environ: dict[str, str], upstream: Upstream) -> None:
    program(tmp_path, "opencode", OPENCODE)
    text = '{"provider": {"corp": {"options": {"baseURL": "%s/v1"}}}}' % upstream.url  # noqa: UP031
    (tmp_path / "opencode.json").write_text(text)
    assert "OPENCODE_CONFIG_CONTENT=" in check(tmp_path, environ, upstream, "opencode", "run", "hello")
    assert (tmp_path / "opencode.json").read_text() == text


def test_pi_is_routed_by_a_temporary_copy(tmp_path: Path, environ: dict[str, str], upstream: Upstream) -> None:
    program(tmp_path, "pi", PI)
    (tmp_path / "pi").mkdir()
    (tmp_path / "pi" / "auth.json").write_text("{}")
    (tmp_path / "pi" / "models.json").write_text('{"providers": {"corp": {"baseUrl": "%s/v1"}}}' % upstream.url)  # noqa: UP031
    said = check(tmp_path, environ, upstream, "pi", "-p", "hello")
    copy = said.partition("PI_CODING_AGENT_DIR=")[2].split()[0]
    assert copy
    assert not Path(copy).exists()


def test_a_program_that_reads_its_base_url_from_a_dotenv_file(
    tmp_path: Path, environ: dict[str, str], upstream: Upstream
) -> None:
    """With a default in its environment the program would call another provider, with the key of this one."""
    program(tmp_path, "my-agent", DOTENV)
    (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={upstream.url}/v1\n")
    check(tmp_path, environ, upstream, "my-agent")


def test_without_a_name_a_tape_is_named_for_its_program(
    tmp_path: Path, environ: dict[str, str], upstream: Upstream
) -> None:
    program(tmp_path, "opencode", OPENCODE)
    text = '{"provider": {"corp": {"options": {"baseURL": "%s/v1"}}}}' % upstream.url  # noqa: UP031
    (tmp_path / "opencode.json").write_text(text)
    for name in ("opencode.tape", "opencode-2.tape"):
        done = wiretape(tmp_path, environ, "record", "--", "opencode", "run")
        assert done.returncode == 0, done.stderr
        assert f"wiretape show captures/{name}" in done.stderr.replace("\\", "/")
        assert len(read_tape(tmp_path / "captures" / name).exchanges) == 1
