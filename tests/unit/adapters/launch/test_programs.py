from __future__ import annotations

import shlex

import pytest

from wiretape.adapters.launch.presets import PRESETS
from wiretape.adapters.launch.programs import commands, find_program, tape_name


@pytest.mark.parametrize(
    ("line", "preset", "at"),
    [
        ("codex exec 'read it'", "codex", 0),
        ("/opt/bin/codex exec", "codex", 0),
        ("codex.exe exec", "codex", 0),
        ("npx codex", "codex", 1),
        ("npx -y @openai/codex@latest exec", "codex", 2),
        ("npx -p @openai/codex codex exec", "codex", 3),
        ("node --require ./x.js /usr/lib/node_modules/@openai/codex/bin/codex.js exec", "codex", 3),
        ("env -u FOO BAR=1 claude -p hello", "claude", 4),
        ("timeout -k 5 60 claude -p hello", "claude", 4),
        ("time -p claude -p hello", "claude", 2),
        ("exec -a agent claude -p hello", "claude", 3),
        ("env - A=1 claude -p hello", "claude", 3),
        ("nice -n 10 pnpm dlx opencode-ai run x", "opencode", 5),
        ("python -m aider --model x", "aider", 2),
        ("python3.13 -W error -m aider.main", "aider", 4),
        ("uv run --with rich aider", "aider", 4),
        ("uvx --from aider-chat aider", "aider", 3),
        ("uvx 'aider-chat[browser]==0.86'", "aider", 1),
        ("bunx @google/gemini-cli -p x", "gemini", 1),
        ("python agent.py --codex", "python", 1),
        ("uv run agent.py", "python", 2),
        ("./agent.py", "python", 0),
        ("node agent.mjs", "node", 1),
        ("tsx src/agent.ts", "node", 1),
        ("./agent codex", "program", 0),
        ("python -c 'import codex'", "python", None),
        ("bash agent.sh", "program", 0),
        ("java -cp a:b -Xmx1g com.acme.Agent x", "java", 4),
        ("java -jar my-agent.jar", "java", 2),
        ("./my-agent.jar", "java", 0),
        ("./gradlew run", "java", 0),
        ("/opt/maven/bin/mvn -q exec:java", "java", 0),
        ("bash -c 'cd x && exec java -jar a.jar'", "java", None),
        ("php -d memory_limit=1G agent.php", "php", 3),
        ("php -r 'echo 1;'", "php", None),
        ("perl -Ilib agent.pl", "perl", 2),
        ("bundle exec rspec", "ruby", 2),
        ("ruby -I lib agent.rb", "ruby", 3),
        ("Rscript agent.R", "r", 1),
        ("mix run", "erlang", 0),
        ("sudo -E -u bob codex exec", "codex", 4),
        ("xargs -P 4 -n 1 java -jar a.jar", "java", 7),
        ("setsid nohup claude -p x", "claude", 2),
    ],
)
def test_programs_are_known_by_name_through_what_launches_them(line: str, preset: str, at: int | None) -> None:
    found = find_program(shlex.split(line))
    assert (found.preset.name, found.at) == (preset, at)


def test_a_program_inside_a_shells_command_is_known_and_nothing_can_be_inserted_there() -> None:
    found = find_program(["bash", "-lc", "cd x && CODEX_HOME=y codex exec 'a b' | tee log"])
    assert (found.preset.name, found.at) == ("codex", None)
    assert find_program(["sh", "-c", "echo 'codex"]).preset.name == "program"


def test_every_command_of_a_command_line_is_told() -> None:
    line = ["nice", "-n", "5", "bash", "-c", "A=1 make x | env -i codex exec; true", "sudo"]
    assert [words[0] for words in commands(line)] == ["nice", "bash", "make", "env", "codex", "true"]
    assert [words[0] for words in commands(["python", "-m", "sudo"])] == ["python"]
    assert list(commands([])) == []


def test_windows_paths_are_taken_apart_too() -> None:
    assert find_program([r"C:\tools\codex.cmd", "exec"]).preset.name == "codex"


def test_no_command_is_no_program() -> None:
    assert find_program([]).preset.name == "program"
    assert find_program(["env", "A=1"]).at is None


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_every_preset_is_found_by_each_of_its_names(preset: object) -> None:
    for command in preset.commands:  # type: ignore[attr-defined]
        assert find_program([command]).preset is preset
    for package in preset.packages:  # type: ignore[attr-defined]
        assert find_program(["npx", package]).preset is preset
        assert find_program(["node", f"/x/node_modules/{package}/cli.js"]).preset is preset
    for module in preset.modules:  # type: ignore[attr-defined]
        assert find_program(["python3", "-m", module]).preset is preset


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("npx -y @openai/codex exec", "codex"),
        ("python src/agent.py --x", "agent"),
        ("./run me.sh", "run"),
        ("'./run me.sh'", "run-me"),
        ("python -c 'x'", "python"),
        ("python3 -m my.agent", "my.agent"),
        ("java -jar build/my-agent.jar", "my-agent"),
        ("java com.acme.Agent", "com.acme.Agent"),
        ("php agent.php", "agent"),
        ("mvn exec:java", "mvn"),
        ("", "recording"),
        ("../..", "recording"),
    ],
)
def test_a_tape_is_named_for_its_program(line: str, name: str) -> None:
    assert tape_name(shlex.split(line)) == name
