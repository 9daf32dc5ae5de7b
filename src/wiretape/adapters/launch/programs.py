"""Finds the preset of a command line: by the program's name, through the launchers that may stand before it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import PurePath

from wiretape.adapters.launch.presets import JVM, LANGUAGES, NODE, PERL, PHP, PRESETS, PROGRAM, PYTHON, RUBY, Preset, R


@dataclass(frozen=True, slots=True)
class Program:
    """`at`: the word of the command line that names the program; None where it stands inside a shell's command."""

    preset: Preset
    at: int | None


@dataclass(frozen=True, slots=True)
class _Launcher:
    """A program that runs the one named after it. `takes_value`: its options that have a value of their own."""

    takes_value: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()  # subcommands that lead on to the program
    positional: int = 0  # arguments of its own before the program
    runs: Preset | None = None


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NODE_OPTIONS = _options("-r --require --import --loader --experimental-loader -C --conditions --env-file --title")
_UV_OPTIONS = _options(
    "--with --with-editable --with-requirements -p --python --extra --group --only-group --env-file --project"
    " --directory --package --index --from -n --refresh-package"
)
_LAUNCHERS: dict[str, _Launcher] = {
    "env": _Launcher(_options("-u --unset -C --chdir"), _options("-")),  # "-" is -i
    "nice": _Launcher(_options("-n --adjustment")),
    "timeout": _Launcher(_options("-s --signal -k --kill-after"), positional=1),
    "stdbuf": _Launcher(_options("-i -o -e")),
    "time": _Launcher(_options("-o -f")),
    "nohup": _Launcher(),
    "setsid": _Launcher(),
    "ionice": _Launcher(_options("-c --class -n --classdata -p --pid")),
    "xargs": _Launcher(_options("-a -d -E -I -L -n -P -s --max-args --max-procs --max-lines --delimiter")),
    "sudo": _Launcher(
        _options("-u --user -g --group -h --host -p --prompt -C -D --chdir -r --role -t --type -T -R -U")
    ),
    "doas": _Launcher(_options("-u -C -a")),
    "exec": _Launcher(_options("-a")),
    "command": _Launcher(),
    "npx": _Launcher(_options("-p --package -w --workspace"), runs=NODE),
    "bunx": _Launcher(_options("-p --package"), runs=NODE),
    "pnpx": _Launcher(_options("--package"), runs=NODE),
    "npm": _Launcher(_options("-p --package -w --workspace"), _options("exec x"), runs=NODE),
    "pnpm": _Launcher(_options("--package -C --dir --filter"), _options("dlx exec"), runs=NODE),
    "yarn": _Launcher(_options("-p --package"), _options("dlx exec run"), runs=NODE),
    "bun": _Launcher(_options("--cwd -r --preload"), _options("run x"), runs=NODE),
    "node": _Launcher(_NODE_OPTIONS, runs=NODE),
    "tsx": _Launcher(_NODE_OPTIONS, runs=NODE),
    "deno": _Launcher(_options("--config -c --import-map"), _options("run"), runs=NODE),
    "python": _Launcher(_options("-W -X --check-hash-based-pycs"), runs=PYTHON),
    "uv": _Launcher(_UV_OPTIONS, _options("run tool x"), runs=PYTHON),
    "uvx": _Launcher(_UV_OPTIONS, runs=PYTHON),
    "pipx": _Launcher(_options("--spec --python --index-url"), _options("run"), runs=PYTHON),
    "poetry": _Launcher(_options("-C --directory -P --project"), _options("run"), runs=PYTHON),
    "pdm": _Launcher(_options("-p --project"), _options("run"), runs=PYTHON),
    "hatch": _Launcher(_options("-e --env"), _options("run"), runs=PYTHON),
    "java": _Launcher(_options("-cp -classpath --class-path -p --module-path --add-modules -m"), runs=JVM),
    "php": _Launcher(_options("-c -d -r -z -B -R -E"), runs=PHP),
    "perl": _Launcher(_options("-I -M"), runs=PERL),
    "ruby": _Launcher(_options("-I -r -C -W"), runs=RUBY),
    "bundle": _Launcher(words=_options("exec"), runs=RUBY),
    "Rscript": _Launcher(runs=R),
}
_ENDED = {
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts"), NODE),
    **dict.fromkeys((".jar", ".java", ".kts"), JVM),
    ".py": PYTHON,
    ".php": PHP,
    ".pl": PERL,
    ".rb": RUBY,
    ".R": R,
}
_INLINE = _options("-c -e --eval -p --print")  # of interpreters; time -p, for one, goes on to a program
_SHELLS = _options("sh bash zsh dash fish")
_PYTHON_NAME = re.compile(r"(?:python|pypy)w?[0-9.]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.ASCII | re.DOTALL)
_ENDINGS = re.compile(r"\.(?:exe|cmd|bat|ps1)$", re.IGNORECASE)


def find_program(argv: Sequence[str]) -> Program:
    """The preset of a command line; PROGRAM where nothing is known of it."""
    launched: Preset | None = None
    at = 0
    while at < len(argv):
        word = argv[at]
        preset = _by_command(word) or _by_package(word)
        if preset is not None:
            return Program(preset, at)
        name = command_name(word)
        if name in _SHELLS:
            return _in_shell(argv[at + 1 :]) or Program(launched or PROGRAM, at)
        launcher = _LAUNCHERS.get("python" if _PYTHON_NAME.fullmatch(name) else name)
        if launcher is None:
            return Program(_by_language(name) or launched or _by_ending(word), at)
        launched = launcher.runs or launched
        at, module = _past(launcher, argv, at + 1)
        if module is not None:
            return Program(_by_module(module) or launched or PROGRAM, at)
    return Program(launched or PROGRAM, None)


def commands(argv: Sequence[str]) -> Iterator[list[str]]:
    """Every command that a command line runs, with its own words: those that launch another, and what they launch."""
    words = list(argv)
    while words:
        name = command_name(words[0])
        launcher = _LAUNCHERS.get(name)
        if launcher is None:
            yield words
            for inner in _in_shells_command(words[1:]) if name in _SHELLS else ():
                yield from commands(inner)
            return
        at, module = _past(launcher, words, 1)
        yield words[:at]
        words = words[at:] if module is None else []


def tape_name(argv: Sequence[str]) -> str:
    """What a tape of this command line may be called: `codex`, or `agent` for `python src/agent.py`."""
    found = find_program(argv)
    if found.preset in PRESETS:
        return found.preset.name
    word = argv[found.at] if found.at is not None and found.at < len(argv) else (argv[0] if argv else "")
    stem = re.sub(r"\.(?:py|js|mjs|cjs|ts|sh|jar|java|kts|php|pl|rb|R)$", "", command_name(word))
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "recording"


def command_name(word: str) -> str:
    """`/usr/bin/codex` and `codex.exe` are called `codex`."""
    return _ENDINGS.sub("", re.split(r"[/\\]", word)[-1])


def _past(launcher: _Launcher, argv: Sequence[str], at: int) -> tuple[int, str | None]:
    """The word after a launcher's own options and words; and the module that `-m` names, where it does."""
    positional = launcher.positional
    while at < len(argv):
        word = argv[at]
        if word == "-m" and launcher.runs is PYTHON:
            return at + 1, argv[at + 1] if at + 1 < len(argv) else None
        if launcher.runs is not None and word in _INLINE and word not in launcher.takes_value:
            return len(argv), None  # a program in the command line itself
        if word == "--" or word in launcher.words or _ASSIGNMENT.fullmatch(word):
            at += 1
        elif word.startswith("-") and word != "-":
            at += 2 if word in launcher.takes_value else 1
        elif positional:
            positional, at = positional - 1, at + 1
        else:
            return at, None
    return at, None


def _in_shell(argv: Sequence[str]) -> Program | None:
    """`bash -c 'cd x && codex exec …'`: the first program in it that is known. Nothing can be inserted there."""
    found = [find_program(words).preset for words in _in_shells_command(argv)]
    known = next((preset for preset in found if preset in PRESETS), None)
    known = known or next((preset for preset in found if preset is not PROGRAM), None)
    return Program(known, at=None) if known is not None else None


def _in_shells_command(argv: Sequence[str]) -> Iterator[list[str]]:
    """The command lines in what a shell is given with `-c`; `argv` stands behind the shell's name."""
    command = next((argv[i + 1] for i, word in enumerate(argv[:-1]) if re.fullmatch(r"-\w*c", word)), "")
    for part in re.split(r"&&|\|\||[;|&\n]", command):
        try:
            words = shlex.split(part)
        except ValueError:  # quotes that go over the part's end
            continue
        yield list(dropwhile(_ASSIGNMENT.fullmatch, words))


def _by_command(word: str) -> Preset | None:
    name = command_name(word)
    return next((preset for preset in PRESETS if name in preset.commands), None)


def _by_language(name: str) -> Preset | None:
    return next((preset for preset in LANGUAGES if name in preset.commands), None)


def _by_package(word: str) -> Preset | None:
    """`@openai/codex@latest`, `aider-chat[browser]==0.86`, or the path of a script inside the package."""
    path = word.replace("\\", "/")
    bare = re.split(r"(?<!^)@|[\[=<>~!]", path)[0]
    for preset in PRESETS:
        if any(bare == package or f"/{package}/" in f"/{path}" for package in preset.packages):
            return preset
    return None


def _by_module(module: str) -> Preset | None:
    top = module.partition(".")[0]
    return next((preset for preset in PRESETS if top in preset.modules), None)


def _by_ending(word: str) -> Preset:
    return _ENDED.get(PurePath(word).suffix, PROGRAM)
