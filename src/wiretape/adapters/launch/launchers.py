"""Programs that start the program named after them: `npx codex`, `sudo -u bob python agent.py`. Data only.

An entry says which words of its command line are its own, so that `programs.py` finds the launched program. `drop` says
when the launcher drops the variables that wiretape sets, for `env_leaks.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wiretape.adapters.launch.presets import JVM, NODE, PERL, PHP, PYTHON, RUBY, Preset, R


@dataclass(frozen=True, slots=True)
class EnvDrop:
    """Why a launcher drops variables, and the fix: only with one of `only`, never with a match of `unless`."""

    reason: str
    fix: str
    only: frozenset[str] = frozenset()
    unless: str = ""

    def applies(self, arguments: Sequence[str]) -> bool:
        """Match the launcher's arguments, without the launched program where that is known."""
        if self.only and self.only.isdisjoint(arguments):
            return False
        return not (self.unless and any(re.match(self.unless, argument) for argument in arguments))


@dataclass(frozen=True, slots=True)
class Launcher:
    """A program that runs the one named after it. An `opaque` launcher hides it: the words after it are not read."""

    takes_value: frozenset[str] = frozenset()  # options that are followed by a value
    words: frozenset[str] = frozenset()  # subcommands before the program
    positional: int = 0  # arguments of its own before the program
    runs: Preset | None = None  # the language of what it runs
    drop: EnvDrop | None = None
    opaque: bool = False


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


INLINE_CODE: Final = _options("-c -e --eval -p --print")  # of launchers with a language: the program is an argument
SHELLS: Final = _options("sh bash zsh dash fish")

_NODE_OPTIONS = _options("-r --require --import --loader --experimental-loader -C --conditions --env-file --title")
_UV_OPTIONS = _options(
    "--with --with-editable --with-requirements -p --python --extra --group --only-group --env-file --project"
    " --directory --package --index --from -n --refresh-package"
)
_INSIDE = "run wiretape inside, or pass its variables on: docs/clients.md"
_CONTAINER = Launcher(
    opaque=True,
    drop=EnvDrop(
        "a container has its own environment and its own loopback",
        _INSIDE,
        only=_options("run exec start up"),
        unless="-e|--env",
    ),
)

LAUNCHERS: Final[dict[str, Launcher]] = {
    "env": Launcher(
        _options("-u --unset -C --chdir"),
        _options("-"),  # the same as -i
        drop=EnvDrop(
            "env -i drops wiretape's variables",
            "leave out -i, or put env -i in front of wiretape",
            only=_options("-i - --ignore-environment"),
        ),
    ),
    "nice": Launcher(_options("-n --adjustment")),
    "timeout": Launcher(_options("-s --signal -k --kill-after"), positional=1),
    "stdbuf": Launcher(_options("-i -o -e")),
    "time": Launcher(_options("-o -f")),
    "nohup": Launcher(),
    "setsid": Launcher(),
    "ionice": Launcher(_options("-c --class -n --classdata -p --pid")),
    "xargs": Launcher(_options("-a -d -E -I -L -n -P -s --max-args --max-procs --max-lines --delimiter")),
    "sudo": Launcher(
        _options("-u --user -g --group -h --host -p --prompt -C -D --chdir -r --role -t --type -T -R -U"),
        drop=EnvDrop("sudo drops wiretape's variables", "sudo -E keeps them", unless="-[AbHikKnPsS]*E|--preserve-env"),
    ),
    "doas": Launcher(
        _options("-u -C -a"), drop=EnvDrop("doas drops wiretape's variables", "run wiretape itself with doas")
    ),
    "exec": Launcher(_options("-a")),
    "command": Launcher(),
    "npx": Launcher(_options("-p --package -w --workspace"), runs=NODE),
    "bunx": Launcher(_options("-p --package"), runs=NODE),
    "pnpx": Launcher(_options("--package"), runs=NODE),
    "npm": Launcher(_options("-p --package -w --workspace"), _options("exec x"), runs=NODE),
    "pnpm": Launcher(_options("--package -C --dir --filter"), _options("dlx exec"), runs=NODE),
    "yarn": Launcher(_options("-p --package"), _options("dlx exec run"), runs=NODE),
    "bun": Launcher(_options("--cwd -r --preload"), _options("run x"), runs=NODE),
    "node": Launcher(_NODE_OPTIONS, runs=NODE),
    "tsx": Launcher(_NODE_OPTIONS, runs=NODE),
    "deno": Launcher(_options("--config -c --import-map"), _options("run"), runs=NODE),
    "python": Launcher(_options("-W -X --check-hash-based-pycs"), runs=PYTHON),
    "uv": Launcher(_UV_OPTIONS, _options("run tool x"), runs=PYTHON),
    "uvx": Launcher(_UV_OPTIONS, runs=PYTHON),
    "pipx": Launcher(_options("--spec --python --index-url"), _options("run"), runs=PYTHON),
    "poetry": Launcher(_options("-C --directory -P --project"), _options("run"), runs=PYTHON),
    "pdm": Launcher(_options("-p --project"), _options("run"), runs=PYTHON),
    "hatch": Launcher(_options("-e --env"), _options("run"), runs=PYTHON),
    "java": Launcher(_options("-cp -classpath --class-path -p --module-path --add-modules -m"), runs=JVM),
    "php": Launcher(_options("-c -d -r -z -B -R -E"), runs=PHP),
    "perl": Launcher(_options("-I -M"), runs=PERL),
    "ruby": Launcher(_options("-I -r -C -W"), runs=RUBY),
    "bundle": Launcher(words=_options("exec"), runs=RUBY),
    "Rscript": Launcher(runs=R),
    "su": Launcher(
        opaque=True,
        drop=EnvDrop("su - drops wiretape's variables", "su without - keeps them", only=_options("- -l --login")),
    ),
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose", "kubectl"), _CONTAINER),
    "ssh": Launcher(opaque=True, drop=EnvDrop("another machine has its own environment and its own loopback", _INSIDE)),
    "tmux": Launcher(
        opaque=True,
        drop=EnvDrop(
            "a running tmux server keeps the environment it was started with",
            "tmux -L wiretape starts another",
            unless="-L",
        ),
    ),
    "systemd-run": Launcher(
        opaque=True,
        drop=EnvDrop(
            "systemd-run does not inherit the environment",
            "systemd-run --scope does",
            unless="-E|--setenv|--sc",
        ),
    ),
}
