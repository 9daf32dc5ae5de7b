"""Reports launchers that drop the environment, and languages that ignore proxy variables."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from wiretape.adapters.doctor.program_checks import program_checks
from wiretape.adapters.launch.env_leaks import env_leaks
from wiretape.cli.programs import say_env_leaks

SUDO = "sudo drops wiretape's variables (sudo -E keeps them): all its requests go to the real host"


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("sudo codex exec", "sudo drops wiretape's variables"),
        ("sudo -u bob codex exec", "sudo drops wiretape's variables"),
        ("sudo codex exec -E", "sudo drops wiretape's variables"),
        ("timeout 60 sudo make run", "sudo drops wiretape's variables"),
        ("bash -c 'cd x && sudo ./agent'", "sudo drops wiretape's variables"),
        ("env -i PATH=/bin ./agent", "env -i drops wiretape's variables"),
        ("env - ./agent", "env -i drops wiretape's variables"),
        ("sudo -Hu Eve ./agent", "sudo drops wiretape's variables"),
        ("su - bob -c ./agent", "su - drops wiretape's variables"),
        ("doas ./agent", "doas drops wiretape's variables"),
        ("docker run --rm image agent", "a container has its own environment"),
        ("docker compose up", "a container has its own environment"),
        ("kubectl exec pod -- agent", "a container has its own environment"),
        ("ssh host ./agent", "another machine has its own environment"),
        ("tmux new -d ./agent", "a running tmux server keeps"),
        ("systemd-run ./agent", "systemd-run does not inherit the environment"),
        ("mix run", "Erlang's httpc, and Elixir's"),
        ("escript agent.erl", "Erlang's httpc, and Elixir's"),
    ],
)
def test_a_launcher_that_drops_variables_is_reported(line: str, begins: str) -> None:
    (leak,) = env_leaks(shlex.split(line), {})
    assert leak.reason.startswith(begins)
    assert leak.fix


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
def test_other_command_lines_have_no_leak(line: str) -> None:
    assert list(env_leaks(shlex.split(line), {})) == []


def test_a_leak_is_reported_before_the_program_runs_and_by_the_doctor(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    say_env_leaks(["sudo", "./agent"], "at your cost")
    assert capsys.readouterr().err == f"wiretape: {SUDO}, at your cost\n"
    checks = program_checks(["sudo", "./agent"], {"PATH": ""}, tmp_path)
    told = [(check.level, check.said, check.next) for check in checks if check.what == "environment"]
    assert told == [("warn", "sudo drops wiretape's variables", "sudo -E keeps them")]


def test_a_language_that_ignores_proxies_leaks_only_other_addresses() -> None:
    (leak,) = env_leaks(["iex"], {})
    assert str(leak).endswith("its requests to other addresses go to the real host")
