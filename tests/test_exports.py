"""The public face: every module imports by itself, says what may live in it, and exports what it promises."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType

import click
import pytest

import wiretape
from wiretape.cli.main import COMMANDS, module_of

SRC = Path(__file__).parent.parent / "src"
MODULES = sorted(
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    for path in (SRC / "wiretape").rglob("*.py")
)
NEED_MITMPROXY = ("wiretape.adapters.mitm", "wiretape.adapters.importers.mitm_flows", "wiretape.app.recording_server")
HAS_MITMPROXY = importlib.util.find_spec("mitmproxy") is not None


def imported(name: str) -> ModuleType:
    """A module, without what mitmproxy's dependencies warn of one another, whichever test imports it first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_imports_by_itself_and_opens_with_a_docstring(name: str) -> None:
    if name.startswith(NEED_MITMPROXY) and not HAS_MITMPROXY:
        pytest.skip("mitmproxy is not installed: it needs Python 3.12 and the extra `proxy`")
    module = imported(name)
    assert module.__doc__ or Path(str(module.__file__)).stat().st_size == 0, f"{name} has no docstring"


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_promises_it_has(name: str) -> None:
    path = SRC / (name.replace(".", "/") + ".py")
    source = (path if path.exists() else SRC / name.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
    if "__all__" not in source:
        return
    if name.startswith(NEED_MITMPROXY) and not HAS_MITMPROXY:
        pytest.skip("mitmproxy is not installed: it needs Python 3.12 and the extra `proxy`")
    module = imported(name)
    assert len(set(module.__all__)) == len(module.__all__)
    missing = [promised for promised in module.__all__ if not hasattr(module, promised)]
    assert not [one for one in missing if f"{name}.{one}" not in MODULES]  # a package lists its modules


def test_the_public_names_are_these() -> None:
    assert set(wiretape.__all__) >= {"MissError", "MissInterrupt", "WiretapeError", "__version__", "record", "replay"}
    assert set(wiretape.__all__) <= set(dir(wiretape))
    assert not [name for name in wiretape.__all__ if not hasattr(wiretape, name)]
    with pytest.raises(AttributeError, match="module 'wiretape' has no attribute 'rewind'"):
        _ = wiretape.rewind  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "imports",
    [
        "import wiretape",
        "import wiretape.matching.session",
        "import wiretape.matching.session as session; import wiretape",
        "from wiretape.matching.session import ReplaySession; import wiretape",
        "from wiretape import replay; import wiretape.matching.playback",
        "import wiretape.adapters.inprocess.api",
    ],
)
def test_replay_is_a_function_whatever_was_imported_first(imports: str) -> None:
    program = f"""{imports}
import wiretape
from wiretape import replay, record
assert type(wiretape.replay("x.tape")).__name__ == type(replay("x.tape")).__name__ == "Replay"
assert type(record("x.tape")).__name__ == "Record"
import wiretape.compare.difference
assert wiretape.compare.difference.Tier.EXACT.word == "exact"
from wiretape.matching import session
assert wiretape.replay("x.tape").tapes == ("x.tape",)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_wiretape_imports_nothing_heavy() -> None:
    program = "import sys, wiretape; print(*sorted(name for name in sys.modules if name.startswith('wiretape')))"
    program += "; print({'pydantic', 'httpx', 'orjson', 'rich', 'asyncio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["wiretape", "set()"]


HEAVY = (
    "pydantic",
    "httpx",
    "rich",
    "wiretape.matching.session",
    "wiretape.tape.reading.reader",
    "wiretape.wire.registry",
)


@pytest.mark.parametrize(
    ("use", "most"),
    [
        ("wiretape.replay", 12),
        ("wiretape.record", 12),
        ("wiretape.tool(print)", 25),
        ("wiretape.replay('x.tape')", 65),
        ("wiretape.record('x.tape')", 45),
    ],
)
def test_using_the_public_face_imports_little_before_a_context_is_entered(use: str, most: int) -> None:
    """Counts modules, as times depend on the machine."""
    program = f"import sys, wiretape; {use}; print(*(name for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert len([name for name in loaded if name.startswith("wiretape")]) <= most
    assert not set(HEAVY) & set(loaded)


def test_a_user_s_strict_type_checker_knows_the_forms(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text(
        """
import wiretape
import wiretape.matching.values

with wiretape.replay("x.tape", tier="exact", pace=0, on_miss="raise", pass_hosts=["*.corp"]) as ctx:
    reveal_type(ctx.report.played)
with wiretape.record("x.tape", hosts=["h"], all=False, append=True):
    pass


@wiretape.replay("x.tape")
async def run(text: str) -> int:
    return len(text)


reveal_type(run)
wiretape.replay("x.tape", tier="loose")
""",
        encoding="utf-8",
    )
    said, _, _ = mypy.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(program)])
    lines = [line.partition(": ")[2] for line in said.splitlines()]
    assert lines[0].startswith('note: Revealed type is "tuple[wiretape.matching.report.PlayedAnswer, ...]"')
    assert lines[1].startswith('note: Revealed type is "def (text: str) -> ')
    assert lines[2].startswith('error: Argument "tier" to "replay" has incompatible type')
    assert lines[3:] == ["Found 1 error in 1 file (checked 1 source file)"] or "Found 1 error" in said


def test_the_version_is_the_package_s() -> None:
    from importlib.metadata import version

    assert wiretape.__version__ == version("wiretape")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_module_that_defines_it(name: str) -> None:
    command = importlib.import_module(f"wiretape.cli.{module_of(name)}").command
    assert isinstance(command, click.Command)


def test_no_module_of_the_command_line_is_an_unlisted_command() -> None:
    cli = SRC / "wiretape" / "cli"
    defined = {
        ".".join(path.relative_to(cli).with_suffix("").parts)
        for path in cli.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == "command"
    }
    assert defined == set(map(module_of, COMMANDS))


def test_every_name_that_the_tests_import_exists() -> None:
    """Campaigns, benchmarks and fuzzers are run by hand: a rename must not break them unnoticed."""
    missing = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(("wiretape", "tests")):
                continue
            try:
                module = imported(str(node.module))
            except ModuleNotFoundError as error:
                if str(error.name).startswith(("wiretape", "tests")):
                    missing.append(f"{path.name}: {node.module}")
                continue  # a library that is not installed here
            for name in (alias.name for alias in node.names):
                is_module = hasattr(module, "__path__") and importlib.util.find_spec(f"{node.module}.{name}")
                if not hasattr(module, name) and not is_module:
                    missing.append(f"{path.name}: {node.module}.{name}")
    assert missing == []
