"""Finds the preset of a command line: by the program's name, through the launchers before it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import PurePath

from wiretape._plugins import PRESETS as PRESET_PLUGINS
from wiretape._plugins import usable
from wiretape.adapters.launch.launchers import INLINE_CODE, LAUNCHERS, SHELLS, Launcher
from wiretape.adapters.launch.presets import LANGUAGES, PRESETS, PROGRAM, PYTHON, Preset

_PYTHON_NAME = re.compile(r"(?:python|pypy)w?[0-9.]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.ASCII | re.DOTALL)
_EXECUTABLE_SUFFIX = re.compile(r"\.(?:exe|cmd|bat|ps1)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Program:
    """A program on a command line. `at`: the index of its name; None if it is inside a shell's command."""

    preset: Preset
    at: int | None


def presets() -> tuple[Preset, ...]:
    """The built-in presets and those of installed plug-ins."""
    return (*PRESETS, *usable(PRESET_PLUGINS).values())


def find_program(argv: Sequence[str]) -> Program:
    """Return the program that a command line runs. An unknown one has the preset PROGRAM."""
    language: Preset | None = None
    at = 0
    while at < len(argv):
        word = argv[at]
        preset = _by_command(word) or _by_package(word)
        if preset is not None:
            return Program(preset, at)
        name = command_name(word)
        if name in SHELLS:
            return _in_shell(argv[at + 1 :]) or Program(language or PROGRAM, at)
        launcher = LAUNCHERS.get("python" if _PYTHON_NAME.fullmatch(name) else name)
        if launcher is None or launcher.opaque:
            return Program(_by_language(name) or language or _by_suffix(word), at)
        language = launcher.runs or language
        at, module = _after_launcher(launcher, argv, at + 1)
        if module is not None:
            return Program(_by_module(module) or language or PROGRAM, at)
    return Program(language or PROGRAM, None)


def commands(argv: Sequence[str]) -> Iterator[list[str]]:
    """Yield every command of a command line with its own words: each launcher, then what it launches."""
    words = list(argv)
    while words:
        name = command_name(words[0])
        launcher = LAUNCHERS.get(name)
        if launcher is None or launcher.opaque:
            yield words
            for inner in _shell_commands(words[1:]) if name in SHELLS else ():
                yield from commands(inner)
            return
        at, module = _after_launcher(launcher, words, 1)
        yield words[:at]
        words = words[at:] if module is None else []


def tape_name(argv: Sequence[str]) -> str:
    """Return the default name of a tape of this command line: `codex`, or `agent` for `python src/agent.py`."""
    found = find_program(argv)
    if found.preset in presets():
        return found.preset.name
    word = argv[found.at] if found.at is not None and found.at < len(argv) else (argv[0] if argv else "")
    stem = re.sub(r"\.(?:py|js|mjs|cjs|ts|sh|jar|java|kts|php|pl|rb|R)$", "", command_name(word))
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "recording"


def command_name(word: str) -> str:
    """Return the bare name of a program: `codex` for `/usr/bin/codex` and `codex.exe`."""
    return _EXECUTABLE_SUFFIX.sub("", re.split(r"[/\\]", word)[-1])


def _after_launcher(launcher: Launcher, argv: Sequence[str], at: int) -> tuple[int, str | None]:
    """Skip a launcher's own words. Return the index of the next word, and the module that `-m` names, if any."""
    positional = launcher.positional
    while at < len(argv):
        word = argv[at]
        if word == "-m" and launcher.runs is PYTHON:
            return at + 1, argv[at + 1] if at + 1 < len(argv) else None
        if launcher.runs is not None and word in INLINE_CODE and word not in launcher.takes_value:
            return len(argv), None
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
    """Return the first known program in `bash -c 'cd x && codex exec …'`. Arguments cannot be inserted there."""
    found = [find_program(words).preset for words in _shell_commands(argv)]
    known = next((preset for preset in found if preset in presets()), None)
    known = known or next((preset for preset in found if preset is not PROGRAM), None)
    return Program(known, at=None) if known is not None else None


def _shell_commands(arguments: Sequence[str]) -> Iterator[list[str]]:
    """Yield the command lines in a shell's `-c` argument."""
    command = next((arguments[i + 1] for i, word in enumerate(arguments[:-1]) if re.fullmatch(r"-\w*c", word)), "")
    for part in re.split(r"&&|\|\||[;|&\n]", command):
        try:
            words = shlex.split(part)
        except ValueError:  # a quotation that contains a separator was split
            continue
        yield list(dropwhile(_ASSIGNMENT.fullmatch, words))


def _by_command(word: str) -> Preset | None:
    name = command_name(word)
    return next((preset for preset in presets() if name in preset.commands), None)


def _by_language(name: str) -> Preset | None:
    return next((preset for preset in LANGUAGES if name in preset.commands), None)


def _by_package(word: str) -> Preset | None:
    """Match `@openai/codex@latest`, `aider-chat[browser]==0.86`, or the path of a script inside the package."""
    path = word.replace("\\", "/")
    bare = re.split(r"(?<!^)@|[\[=<>~!]", path)[0]
    for preset in presets():
        if any(bare == package or f"/{package}/" in f"/{path}" for package in preset.packages):
            return preset
    return None


def _by_module(module: str) -> Preset | None:
    top = module.partition(".")[0]
    return next((preset for preset in presets() if top in preset.modules), None)


def _by_suffix(word: str) -> Preset:
    suffix = PurePath(word).suffix
    return next((preset for preset in LANGUAGES if suffix in preset.suffixes), PROGRAM)
