"""What is said of launchers that lose the environment, and of languages that read no proxy variable."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from wiretape.adapters.doctor.program_checks import program_checks
from wiretape.adapters.launch.env_leaks import going_past
from wiretape.cli.run.settings_lines import say_what_goes_past

SUDO = "sudo drops the variables that lead here (sudo -E keeps them): what the program asks goes to the real host"


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("sudo codex exec", "sudo drops the variables"),
        ("sudo -u bob codex exec", "sudo drops the variables"),
        ("sudo codex exec -E", "sudo drops the variables"),
        ("timeout 60 sudo make run", "sudo drops the variables"),
        ("bash -c 'cd x && sudo ./agent'", "sudo drops the variables"),
        ("env -i PATH=/bin ./agent", "env -i drops the variables"),
        ("env - ./agent", "env -i drops the variables"),
        ("sudo -Hu Eve ./agent", "sudo drops the variables"),
        ("su - bob -c ./agent", "su - drops the variables"),
        ("doas ./agent", "doas drops the variables"),
        ("docker run --rm image agent", "a container has an environment of its own"),
        ("docker compose up", "a container has an environment of its own"),
        ("kubectl exec pod -- agent", "a container has an environment of its own"),
        ("ssh host ./agent", "another machine has an environment of its own"),
        ("tmux new -d ./agent", "a tmux that runs already keeps"),
        ("systemd-run ./agent", "systemd-run has an environment of its own"),
        ("mix run", "Erlang's httpc, and Elixir's"),
        ("escript agent.erl", "Erlang's httpc, and Elixir's"),
    ],
)
def test_what_is_known_to_go_past_is_said(line: str, begins: str) -> None:
    (past,) = going_past(shlex.split(line), {})
    assert past.said.startswith(begins)
    assert past.next


@pytest.mark.parametrize(
    "line",
    [
        "",
        "./agent sudo",
        "sudo -E codex exec",
        "sudo -HE codex exec",
        "sudo --preserve-env=OPENAI_BASE_URL,HTTPS_PROXY ./agent",
        "env A=1 ./agent -i",
        "su bob -c ./agent",
        "docker build .",
        "docker compose logs",
        "docker run --network host -e OPENAI_BASE_URL image agent",
        "docker compose run --env-file=here agent",
        "tmux -L mine new -d ./agent",
        "systemd-run --scope ./agent",
        "systemd-run --setenv=HTTPS_PROXY ./agent",
        "make run",
        "nohup xargs -P 2 ./agent",
        "java -jar agent.jar",
        "npm run sudo",
    ],
)
def test_of_all_others_nothing_is_said(line: str) -> None:
    assert list(going_past(shlex.split(line), {})) == []


def test_it_is_said_before_the_program_runs_and_by_the_doctor(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    say_what_goes_past(["sudo", "./agent"], "past the tape and at your cost")
    assert capsys.readouterr().err == f"wiretape: {SUDO}, past the tape and at your cost\n"
    checks = program_checks(["sudo", "./agent"], {"PATH": ""}, tmp_path)
    told = [(check.level, check.said, check.next) for check in checks if check.what == "environment"]
    assert told == [("warn", "sudo drops the variables that lead here", "sudo -E keeps them")]


def test_what_a_language_does_not_obey_is_told_from_what_loses_all() -> None:
    (past,) = going_past(["iex"], {})
    assert str(past).endswith("what it asks of an address of its own goes to the real host")
