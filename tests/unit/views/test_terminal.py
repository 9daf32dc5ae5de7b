"""The console is right in a pipe, on a terminal, with colour forced and forbidden."""

from __future__ import annotations

import io

import pytest
from rich.text import Text

from wiretape.views.terminal import make_console, print_lines


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def printed(file: io.StringIO) -> str:
    make_console(file=file).print(Text("red", style="red"))
    return file.getvalue()


def test_a_pipe_gets_80_columns_and_no_escapes() -> None:
    assert make_console(file=io.StringIO()).width == 80
    assert printed(io.StringIO()) == "red\n"


def test_a_terminal_gets_colour() -> None:
    assert printed(Terminal()) == "\x1b[31mred\x1b[0m\n"


@pytest.mark.parametrize(("columns", "width"), [("120", 120), ("5", 40), ("0", 80), ("wide", 80)])
def test_columns_is_honoured(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert make_console(file=io.StringIO()).width == width


def test_no_color_goes_before_force_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31m" in printed(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert printed(io.StringIO()) == "red\n"
    assert printed(Terminal()) == "red\n"


def test_text_is_never_taken_for_markup_or_emoji() -> None:
    file = io.StringIO()
    make_console(file=file).print("[bold]not bold[/] :smile: [/]")
    assert file.getvalue() == "[bold]not bold[/] :smile: [/]\n"


class ClosedPipe(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_closed_pipe_is_left_to_the_command_line() -> None:
    with pytest.raises(BrokenPipeError):
        make_console(file=ClosedPipe()).print("gone")


@pytest.mark.parametrize("colour", [{}, {"FORCE_COLOR": "1"}])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_lines_are_printed_as_rich_prints_them(
    monkeypatch: pytest.MonkeyPatch, colour: dict[str, str], count: int
) -> None:
    for name, value in colour.items():
        monkeypatch.setenv(name, value)
    line = Text("  3  ", "bold").append("模型 [red]x[/red] :smile: " + "long " * 40, "cyan").append("done", "green")
    short, rich_own = io.StringIO(), io.StringIO()
    print_lines(make_console(file=short), [line] * count)
    for _ in range(count):
        make_console(file=rich_own).print(line, soft_wrap=True)
    assert short.getvalue() == rich_own.getvalue()
    assert ("\x1b" in short.getvalue()) is bool(colour and count)
