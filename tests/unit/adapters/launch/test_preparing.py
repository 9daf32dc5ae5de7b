from __future__ import annotations

import json
from pathlib import Path

import pytest

from wiretape.adapters.launch.config_discovery import discover_config
from wiretape.adapters.launch.preparing import PreparedProgram, explained, prepare
from wiretape.adapters.routing.base_urls import base_url_variables
from wiretape.adapters.routing.tool_route import tool_variables

CODEX = '[model_providers.corp]\nbase_url = "https://llm.corp.example/v1"\n[model_providers."a b"]\nbase_url = "http://x:1"\n'


@pytest.fixture
def codex_home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config.toml").write_text(CODEX)
    return {"CODEX_HOME": str(tmp_path)}


def test_a_recording_leaves_configuration_and_arguments_alone(tmp_path: Path, codex_home: dict[str, str]) -> None:
    argv = ["codex", "exec", "x"]
    prepared = prepare(argv, discover_config(argv, codex_home, tmp_path), 8123)
    assert prepared.argv == ("codex", "exec", "x")
    assert prepared.variables == {}


def test_a_replay_overrides_codex_configuration_by_flags(tmp_path: Path, codex_home: dict[str, str]) -> None:
    argv = ["npx", "-y", "@openai/codex", "exec", "x"]
    prepared = prepare(argv, discover_config(argv, codex_home, tmp_path), 8123, replaying=True)
    flag = 'model_providers.corp.base_url="http://127.0.0.1:8123/llm.corp.example/v1"'
    assert prepared.argv == ("npx", "-y", "@openai/codex", "-c", flag, "exec", "x")
    assert any("a b" in note and "special characters" in note for note in prepared.notes)
    assert (tmp_path / "config.toml").read_text() == CODEX


def test_a_default_is_overridden_only_where_the_tape_knows_its_host(tmp_path: Path) -> None:
    argv = ["codex", "exec"]
    around = discover_config(argv, {"CODEX_HOME": str(tmp_path)}, tmp_path)
    assert prepare(argv, around, 8123, replaying=True).argv == ("codex", "exec")
    known = prepare(argv, around, 8123, replaying=True, knows=lambda host: host == "api.openai.com")
    assert known.argv[1:3] == ("-c", 'openai_base_url="http://127.0.0.1:8123/api.openai.com/v1"')


def test_inside_a_shells_command_the_flags_are_told(tmp_path: Path, codex_home: dict[str, str]) -> None:
    argv = ["bash", "-c", "codex exec x"]
    prepared = prepare(argv, discover_config(argv, codex_home, tmp_path), 8123, replaying=True)
    assert list(prepared.argv) == argv
    assert any("add -c" in note and "model_providers.corp.base_url" in note for note in prepared.notes)


def test_opencode_gets_its_base_urls_in_a_variable_beside_what_stands_there(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text('{"provider": {"x": {"options": {"baseURL": "https://x.example/v1"}}}}')
    environ = {"HOME": str(tmp_path), "OPENCODE_CONFIG_CONTENT": '{"model": "x/y"}'}
    argv = ["opencode", "run", "x"]
    prepared = prepare(argv, discover_config(argv, environ, tmp_path), 8123, replaying=True)
    assert json.loads(prepared.variables["OPENCODE_CONFIG_CONTENT"]) == {
        "model": "x/y",
        "provider": {"x": {"options": {"baseURL": "http://127.0.0.1:8123/x.example/v1"}}},
    }


def test_pi_gets_a_copy_of_its_directory_in_which_only_the_base_urls_differ(tmp_path: Path) -> None:
    home = tmp_path / "agent"
    (home / "sessions").mkdir(parents=True)
    (home / "auth.json").write_text("{}")
    models = {"providers": {"mine": {"baseUrl": "http://127.0.0.1:9000/v1", "api": "x", "models": [{"id": "m"}]}}}
    (home / "models.json").write_text(json.dumps(models))
    (tmp_path / "scratch").mkdir()
    argv = ["pi", "-p", "x"]
    around = discover_config(argv, {"PI_CODING_AGENT_DIR": str(home)}, tmp_path)
    prepared = prepare(
        argv,
        around,
        8123,
        replaying=True,
        knows=lambda host: host == "api.anthropic.com",
        scratch=tmp_path / "scratch",
    )
    copy = Path(prepared.variables["PI_CODING_AGENT_DIR"])
    assert copy.parent == tmp_path / "scratch"
    written = json.loads((copy / "models.json").read_text())
    assert written["providers"]["mine"] == {
        "baseUrl": "http://127.0.0.1:8123/127.0.0.1:9000/v1",
        "api": "x",
        "models": [{"id": "m"}],
    }
    assert written["providers"]["anthropic"] == {"baseUrl": "http://127.0.0.1:8123/api.anthropic.com"}
    assert "openai" not in written["providers"]
    assert sorted(entry.name for entry in copy.iterdir()) == ["auth.json", "models.json", "sessions"]
    assert json.loads((home / "models.json").read_text()) == models


def test_variables_of_a_preset_are_set_where_they_are_meant_to_be(tmp_path: Path) -> None:
    argv = ["gemini", "-p", "x"]
    around = discover_config(argv, {"HOME": str(tmp_path)}, tmp_path)
    one_thread = {"UV_THREADPOOL_SIZE": "1"}
    assert prepare(argv, around, 8123).variables == one_thread
    replayed = prepare(argv, around, 8123, replaying=True).variables
    assert replayed == {"CODE_ASSIST_ENDPOINT": "http://127.0.0.1:8123/cloudcode-pa.googleapis.com"} | one_thread


def test_nothing_is_set_that_changes_what_claude_code_sends(tmp_path: Path) -> None:
    """Without its telemetry it has other tools and another prompt: a recording and its replay would differ."""
    argv = ["claude", "-p", "x"]
    around = discover_config(argv, {}, tmp_path)
    assert prepare(argv, around, 8123).variables == prepare(argv, around, 8123, replaying=True).variables == {}


def test_the_users_own_value_goes_before_a_presets(tmp_path: Path) -> None:
    argv = ["aider"]
    assert prepare(argv, discover_config(argv, {}, tmp_path), 1).variables == {"AIOHTTP_TRUST_ENV": "True"}
    assert prepare(argv, discover_config(argv, {"AIOHTTP_TRUST_ENV": "False"}, tmp_path), 1).variables == {}
    argv = ["goose", "run"]
    around = discover_config(argv, {"OPENAI_HOST": "https://llm.corp.example"}, tmp_path)
    assert prepare(argv, around, 1).variables["OPENAI_HOST"] == "http://127.0.0.1:1/llm.corp.example"


def test_every_variable_is_explained(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_BASE_URL=https://two.example\n")
    around = discover_config(["x"], {"OPENAI_BASE_URL": "https://one.example/v1"}, tmp_path)
    variables = base_url_variables(around.environ, 1) | tool_variables("record", 1)
    reasons = {setting.name: setting.why for setting in explained(variables, around)}
    assert reasons["WIRETAPE_TOOLS"] == "records or answers functions wrapped with `@wiretape.tool`"
    assert reasons["OPENAI_BASE_URL"].startswith("your own value")
    assert str(tmp_path / ".env") in reasons["ANTHROPIC_BASE_URL"]
    assert reasons["GROQ_BASE_URL"].startswith("the provider's default")


def test_what_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "models.json").write_text("{")
    environ = {"PI_CODING_AGENT_DIR": str(tmp_path), "OPENCODE_CONFIG_CONTENT": "{", "HOME": str(tmp_path)}

    def run(name: str) -> PreparedProgram:
        around = discover_config([name], environ, tmp_path)
        return prepare([name], around, 1, replaying=True, knows=lambda host: True, scratch=tmp_path / "scratch")

    assert run("pi").variables == run("opencode").variables == {}
    assert any("cannot read the base URLs of" in note and "models.json" in note for note in run("pi").notes)
    assert any(note.startswith("OPENCODE_CONFIG_CONTENT is unchanged") for note in run("opencode").notes)


def test_of_two_spellings_one_is_told(tmp_path: Path) -> None:
    around = discover_config(["x"], {}, tmp_path)
    variables = {"HTTPS_PROXY": "a", "https_proxy": "a", "AWS_REGION": "x", "AWS_ENDPOINT_URL": "http://127.0.0.1:1/x"}
    reasons = {setting.name: setting.why for setting in explained(variables, around)}
    assert list(reasons) == ["HTTPS_PROXY", "AWS_REGION", "AWS_ENDPOINT_URL"]
    assert "none" in reasons["AWS_REGION"]
    assert "tape" in reasons["AWS_ENDPOINT_URL"]
