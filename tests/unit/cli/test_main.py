"""The front door: what is imported, what is said when something is wrong, and with which exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import click
import pytest

from wiretape.cli import main as front
from wiretape.cli.main import COMMANDS, main, unknown_command
from wiretape.errors import MissError, UsageError

HEAVY = ("rich", "pydantic", "httpx", "mitmproxy", "httptools", "orjson", "asyncio")


def python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", env={**os.environ, **environ}
    )


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["stats", "--help"], ["show", "--help"], ["ls", "--help"]])
def test_help_imports_nothing_heavy(argv: list[str]) -> None:
    code = (
        f"import sys; from wiretape.cli.main import main; main({argv!r})\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = python(code)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_every_command_is_in_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and line in out for name, line in COMMANDS.items())


def test_a_mistyped_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stat", "x.tape"]) == 2
    assert "No such command 'stat'. Did you mean stats?" in capsys.readouterr().err


def test_a_command_like_no_other_is_refused_plainly() -> None:
    assert unknown_command("frobnicate") == "No such command 'frobnicate'."
    assert unknown_command("RECORD") == "No such command 'RECORD'. Did you mean record?"


def test_a_tape_in_a_command_s_place_is_told_how_to_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["captures/a.tape"]) == 2
    assert "To look at a tape: wiretape show captures/a.tape" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["stats"], ["show", "a", "1", "b"], ["ls", "--frob"], ["--frob"]])
def test_wrong_usage_exits_with_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    assert "Error: " in capsys.readouterr().err


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes every command fail with an exception."""

    def install(error: BaseException) -> None:
        def fail() -> None:
            raise error

        monkeypatch.setattr(front.LazyGroup, "get_command", lambda *_: click.Command("ls", callback=fail))

    return install


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("port 80 is in use"), 2, "wiretape: port 80 is in use\n"),
        (MissError("one \x1b[2J miss"), 3, "wiretape: one \\x1b[2J miss\n"),
        (PermissionError(13, "Permission denied", "a.tape"), 2, "wiretape: a.tape: Permission denied\n"),
        (
            KeyError("x\ny"),
            70,
            "wiretape: internal error: KeyError: 'x\\ny' (WIRETAPE_DEBUG=1 shows the traceback)\n",
        ),
        (RecursionError(), 70, "wiretape: internal error: RecursionError (WIRETAPE_DEBUG=1 shows the traceback)\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failures_are_one_line_and_a_code(
    failing: Callable[[BaseException], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    said: str,
) -> None:
    monkeypatch.delenv("WIRETAPE_DEBUG", raising=False)
    failing(error)
    assert main(["ls"]) == code
    assert capsys.readouterr().err.strip("\n") == said.strip("\n")


def test_debug_shows_the_traceback(
    failing: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WIRETAPE_DEBUG", "1")
    failing(KeyError("x"))
    assert main(["ls"]) == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "in fail" in err


def test_the_exit_code_of_a_command_is_passed_on(failing: Callable[[BaseException], None]) -> None:
    failing(click.exceptions.Exit(3))
    assert main(["ls"]) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGPIPE there")
def test_a_closed_pipe_ends_quietly() -> None:
    code = (
        "import sys; from wiretape.cli.main import LazyGroup, main; import click\n"
        "LazyGroup.get_command = lambda *_: click.Command('ls', callback=lambda: print('x' * 200000))\n"
        "sys.exit(main(['ls']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 141


def test_a_console_of_a_narrow_encoding_shows_escapes() -> None:
    code = (
        "import sys; from wiretape.cli.main import LazyGroup, main; import click\n"
        "LazyGroup.get_command = lambda *_: click.Command('ls', callback=lambda: print('日程'))\n"
        "sys.exit(main(['ls']))"
    )
    done = python(code, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout.strip()) == (0, r"\u65e5\u7a0b")


@pytest.mark.parametrize(("asked", "like"), [(["help"], ["--help"]), (["help", "record"], ["record", "--help"])])
def test_help_is_a_command_too(asked: list[str], like: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(like) == 0
    page = capsys.readouterr().out
    assert main(asked) == 0
    assert capsys.readouterr().out == page


def test_help_for_a_command_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "stat"]) == 2
    assert "Did you mean stats?" in capsys.readouterr().err
