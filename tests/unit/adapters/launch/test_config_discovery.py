from __future__ import annotations

from pathlib import Path

import pytest

from wiretape.adapters.launch.config_discovery import discover_config, json_object
from wiretape.adapters.routing.base_urls import base_url_variables


def test_the_base_url_of_a_dotenv_file_is_left_to_the_program_in_a_recording(tmp_path: Path) -> None:
    """A variable that is set goes before a .env file: a default would send the user's key to another provider."""
    (tmp_path / ".env").write_text("# models\nexport OPENAI_BASE_URL='https://llm.corp.example/v1'  # ours\nKEY=1\n")
    around = discover_config(["python", "agent.py"], {"HOME": "/nowhere"}, tmp_path)
    assert around.from_files == {"OPENAI_BASE_URL": tmp_path / ".env"}
    assert "llm.corp.example" in around.hosts
    variables = around.without_file_variables(base_url_variables({}, 8123))
    assert "OPENAI_BASE_URL" not in variables
    assert "OPENAI_API_BASE" not in variables
    assert "ANTHROPIC_BASE_URL" in variables
    # A replay leads it to its server.
    replayed = base_url_variables(around.environ, 8123)
    assert replayed["OPENAI_BASE_URL"] == "http://127.0.0.1:8123/llm.corp.example/v1"


def test_a_variable_of_the_environment_goes_before_a_dotenv_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=https://llm.corp.example/v1\n")
    own = {"OPENAI_BASE_URL": "https://api.deepseek.com/v1"}
    around = discover_config(["python", "agent.py"], own, tmp_path)
    assert around.from_files == {}
    assert around.environ["OPENAI_BASE_URL"] == "https://api.deepseek.com/v1"
    variables = base_url_variables(own, 8123)
    assert around.without_file_variables(variables) == variables


def test_dotenv_files_are_looked_for_above_and_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "here" / "below").mkdir(parents=True)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "agent.py").write_text("")
    (tmp_path / "here" / ".env").write_text("OPENAI_BASE_URL=https://one.example/v1\n")
    (tmp_path / "there" / ".env").write_text("ANTHROPIC_BASE_URL=https://two.example\n")
    around = discover_config(["python", "../../there/agent.py"], {}, tmp_path / "here" / "below")
    assert around.environ["OPENAI_BASE_URL"] == "https://one.example/v1"
    assert around.environ["ANTHROPIC_BASE_URL"] == "https://two.example"


def test_files_of_variables_that_only_one_client_reads(tmp_path: Path) -> None:
    (tmp_path / "home" / ".qwen").mkdir(parents=True)
    (tmp_path / "home" / ".qwen" / ".env").write_text("OPENAI_BASE_URL=https://llm.corp.example/v1\n")
    environ = {"HOME": str(tmp_path / "home")}
    (tmp_path / "work").mkdir()
    assert discover_config(["qwen"], environ, tmp_path / "work").from_files
    assert not discover_config(["pi"], environ, tmp_path / "work").from_files


def test_codex_configuration_names_its_hosts(tmp_path: Path) -> None:
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex" / "config.toml").write_text(
        'model_provider = "corp"\n[model_providers.corp]\nbase_url = "https://llm.corp.example/v1"\n'
        '[model_providers.odd]\nbase_url = "not a url"\n'
    )
    around = discover_config(["codex", "exec"], {"CODEX_HOME": str(tmp_path / "codex")}, tmp_path)
    assert [(one.key, one.url) for one in around.found] == [
        (("model_providers", "corp", "base_url"), "https://llm.corp.example/v1")
    ]
    assert around.hosts == ("llm.corp.example",)


@pytest.mark.parametrize("text", ["[not toml", "\udcff", "\x00"])
def test_configuration_that_cannot_be_read_is_said_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    around = discover_config(["codex"], {"CODEX_HOME": str(tmp_path)}, tmp_path)
    assert around.found == ()
    assert str(tmp_path / "config.toml") in around.problems[0]


def test_of_two_files_the_nearer_one_counts(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".config" / "opencode"
    home.mkdir(parents=True)
    shape = '{"provider": {"x": {"options": {"baseURL": "%s"}}}}'
    (home / "opencode.json").write_text(shape % "https://one.example/v1")
    (tmp_path / "opencode.json").write_text(shape % "https://two.example/v1")
    around = discover_config(["opencode", "run"], {"HOME": str(tmp_path / "home")}, tmp_path)
    assert [one.url for one in around.found] == ["https://two.example/v1"]


def test_json_with_comments_and_commas_too_many_is_read() -> None:
    text = '{// mine\n"a": "http://x // no comment", /* b */ "b": [1, 2,], "c": ",}",\n}'
    assert json_object(text) == {"a": "http://x // no comment", "b": [1, 2], "c": ",}"}
    with pytest.raises(ValueError, match="not a JSON object"):
        json_object("[1]")


def test_a_word_that_can_be_no_file_is_no_fault(tmp_path: Path) -> None:
    around = discover_config(["python", "x" * 5000], {}, tmp_path)
    assert around.program.preset.name == "python"
