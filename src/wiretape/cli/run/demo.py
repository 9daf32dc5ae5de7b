"""`wiretape demo`: record a small agent, stop its models, replay it from the tape, and explain the run.

The demo runs the commands that it prints.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.errors import UsageError, WiretapeError

if TYPE_CHECKING:
    from rich.console import Console

AGENT = "wiretape.demo.subagents"
CAPTURE = "subagents.tape"
_DELAY = 0.15  # seconds before a scripted model answers


class DemoFailed(WiretapeError):
    """A step of the demo failed."""

    exit_code = 1


@click.command()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the tape to this file (default: in a new folder)."
)
def command(output: Path | None) -> None:
    """Record, replay and explain a small agent, from start to end.

    The agent is a supervisor that hands a calendar request to a calendar agent. Its models are a scripted upstream
    on this machine, so the demo needs neither a key nor a network. It takes less than a minute.
    """
    from wiretape.views.terminal import make_console

    if output is not None and output.exists():
        raise UsageError(f"{output} exists already: name a new file")
    tape = output or Path(tempfile.mkdtemp(prefix="wiretape-demo-")) / CAPTURE
    Demo(make_console(), tape).run()


@dataclass(frozen=True, slots=True)
class Demo:
    console: Console
    tape: Path

    def run(self) -> None:
        environment, recorded = self._record() if _can_record() else self._unpack()
        replayed = self._replay(environment)
        if recorded is not None:
            self._compare(recorded, replayed)
        self._explain()
        self._next()

    def _record(self) -> tuple[dict[str, str], str]:
        from wiretape.demo.upstream import serve

        self._title("1  record", "An agent runs, and all its requests to models are recorded on a tape.")
        self._say("A user requests a meeting tomorrow at 3; the agent calls its calendar agent.")
        with serve(delay=_DELAY) as upstream:
            self._say(f"Its models are a scripted upstream on {upstream.url}.")
            port = upstream.server_port
            environment = {**os.environ, "DEEPSEEK_BASE_URL": upstream.url, "DEEPSEEK_API_KEY": "demo-key"}
            output = self._wiretape(["record", "--no-stats", "-o", str(self.tape), "--", *_agent()], environment)
        self._title("2  the models are gone", "The upstream is closed, and its port refuses connections:")
        self._say(f"  connect to 127.0.0.1:{port}: {_knock(port)}")
        return environment, output

    def _unpack(self) -> tuple[dict[str, str], None]:
        self._title("1  record", "Skipped: recording needs mitmproxy, which needs Python 3.12 or later.")
        self._say("To record: in wiretape's own folder, on Python 3.12 or later:")
        self._say("  pip install '.[proxy]'")
        self._say("The next steps use a recording of the same agent, which is part of wiretape.")
        self._title("2  no models", "The next steps use neither a model nor a key nor a network.")
        from wiretape.tape.atomic import rewrite

        self.tape.parent.mkdir(parents=True, exist_ok=True)
        rewrite(self.tape, [_packaged_capture().read_bytes()])
        return dict(os.environ), None

    def _replay(self, environment: Mapping[str, str]) -> str:
        self._title("3  replay", "The same program, unchanged, gets the recorded answers.")
        return self._wiretape(["replay", str(self.tape), "--", *_agent()], environment)

    def _compare(self, recorded: str, replayed: str) -> None:
        if recorded != replayed:
            raise DemoFailed(f"the replayed agent printed other text\n  recorded  {recorded}\n  replayed  {replayed}")
        self._say("The agent printed the same text, word for word, without a model.", style="bold")

    def _explain(self) -> None:
        self._title("4  explain", "One sentence of the user took four model calls. Why?")
        self._wiretape(["stats", str(self.tape)], os.environ)

    def _next(self) -> None:
        wiretape = " ".join(_typed("wiretape"))
        self._title("What to type next", "")
        self._say("Look at what call 4 added to the conversation:")
        self._say(f"  {wiretape} show {self.tape} 4")
        self._say("See how a replay refuses a request that was never recorded, a meeting with another title:")
        self._say(f"  {wiretape} replay {self.tape} -- {' '.join(_typed('python'))} -m {AGENT} --title 设计评审会")
        if _can_record():
            self._say("Record your own agent:")
            self._say(f"  {wiretape} record -o my.tape -- python my_agent.py")

    def _title(self, title: str, says: str) -> None:
        from rich.text import Text

        self.console.print()
        self.console.rule(Text(title, style="bold"), align="left")
        if says:
            self._say(says)

    def _say(self, text: str, style: str | None = None) -> None:
        self.console.print(text, style=style, soft_wrap=text.startswith("  "))

    def _wiretape(self, arguments: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run a wiretape command, print its output while it runs, and return it."""
        typed = [word for given in ("wiretape", *arguments) for word in _typed(given)]
        self.console.print(f"$ {' '.join(typed)}", style="cyan", soft_wrap=True)
        return _run([sys.executable, "-m", "wiretape", *arguments], environment)


def _typed(word: str) -> list[str]:
    """Return a word of a command line as a person would type it: a program outside PATH needs its path."""
    if word not in ("wiretape", "python", sys.executable):
        return [word]
    program = Path(sys.executable).with_name("python" if word == sys.executable else word)
    found = shutil.which(program.name)
    if found is not None and Path(found) == program:
        return [program.name]
    if not program.exists():
        return [*_typed("python"), "-m", "wiretape"] if word == "wiretape" else [sys.executable]
    here = Path.cwd()
    return [str(program.relative_to(here) if program.is_relative_to(here) else program)]


def _agent() -> list[str]:
    return [sys.executable, "-m", AGENT]


def _run(argv: Sequence[str], environment: Mapping[str, str]) -> str:
    sys.stdout.flush()
    lines = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=dict(environment), encoding="utf-8") as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            click.echo(line, nl=False)
    if process.returncode:
        raise DemoFailed(f"`wiretape {argv[3]}` ended with exit code {process.returncode}")
    return "".join(lines)


def _can_record() -> bool:
    return importlib.util.find_spec("mitmproxy") is not None


def _knock(port: int) -> str:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    raise DemoFailed(f"something still answers on port {port}")


def _packaged_capture() -> Path:
    """Return the capture in the installed package, or in captures/ of a source tree."""
    package = Path(str(importlib.resources.files("wiretape")))
    for folder in (package / "captures", package.parent.parent / "captures"):
        if (folder / CAPTURE).is_file():
            return folder / CAPTURE
    raise DemoFailed(f"{CAPTURE} is missing from this installation of wiretape; install it again")
