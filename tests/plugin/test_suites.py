"""What concerns a whole suite: orphans, workers of xdist, and what the plugin costs those who do not use it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

pytestmark = pytest.mark.slow

SUITE = """
    @pytest.mark.wiretape
    @pytest.mark.parametrize("word", list("abcdef"))
    def test_one(word):
        said(word)
    @pytest.mark.wiretape("named/two")
    def test_two():
        said("two")
    def test_three():
        pass
"""

SHARED = """
    @pytest.mark.wiretape("shared")
    @pytest.mark.parametrize("word", ["s1", "s2", "s3", "s4"])
    def test_shared(word):
        said(word)
"""


@pytest.fixture
def suite(project: Project) -> Project:
    project.write(SUITE)
    project.run("--wiretape-mode=once").assert_outcomes(passed=8)
    return project


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_tapes_that_no_test_uses_are_listed(suite: Project, workers: tuple[str, ...]) -> None:
    run = suite.run_apart if workers else suite.run
    result = run("--wiretape-orphans", *workers)
    result.stdout.fnmatch_lines(["every tape in captures is used"])
    suite.write(SUITE.replace("abcdef", "abcef").replace('"named/two"', ""))
    result = run("--wiretape-orphans", *workers)
    result.stdout.fnmatch_lines(
        ["2 tapes that no test uses:", "  captures/named/two.tape", "  captures/test_it/test_one?d?.tape"],
        consecutive=True,
    )


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("-k", "two"), "some tests are deselected"),
        (("test_it.py::test_two",), "only a part of the tests was collected"),
        (("test_it.py",), "only a part of the tests was collected"),
        (("--ignore=test_other.py",), "some tests are ignored"),
    ],
)
def test_orphans_are_not_told_from_a_part_of_the_suite(suite: Project, args: tuple[str, ...], why: str) -> None:
    result = suite.run("--wiretape-orphans", *args)
    result.stdout.fnmatch_lines([f"orphans are not listed: {why}"])
    result.stdout.no_fnmatch_line("*that no test uses*")


def test_orphans_are_not_told_when_a_module_does_not_load(suite: Project) -> None:
    suite.write("1 / 0", "test_broken.py")
    result = suite.run("--wiretape-orphans", "--continue-on-collection-errors")
    result.stdout.fnmatch_lines(["orphans are not listed: some tests cannot be collected"])


def test_workers_record_and_replay_side_by_side(project: Project, model: CountingModel) -> None:
    project.write(SUITE)
    project.write(SHARED, "test_shared.py")
    result = project.run_apart("-n", "2", "--wiretape-mode=rewrite")
    result.assert_outcomes(passed=12)
    result.stdout.fnmatch_lines(["recorded captures/named/two.tape (1 exchange)"])
    result.stdout.fnmatch_lines(["recorded captures/shared.tape (4 exchanges)"])
    assert sorted(model.asked) == ["a", "b", "c", "d", "e", "f", "s1", "s2", "s3", "s4", "two"]
    assert len(project.tapes()) == 8
    (project.root / "test_shared.py").unlink()
    project.write(SUITE.replace('said("two")', 'said("to")'))
    result = project.run_apart("-n", "2", "-v")
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["no call on captures/named/two.tape answers POST*"])
    assert len(model.asked) == 11


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    program = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import wiretape.adapters.pytest.plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = done.stdout.split()
    assert [name for name in loaded if not name.startswith("wiretape")] == []
    assert len(loaded) <= 12


def test_a_suite_without_tapes_loads_no_more_and_says_nothing(project: Project) -> None:
    (project.root / "test_it.py").write_text(
        "import sys\n"
        "def test_one():\n"
        "    heavy = {'httpx', 'pydantic', 'rich', 'orjson', 'wiretape.adapters.inprocess.api'}\n"
        "    heavy |= {name for name in sys.modules if name.startswith(('wiretape.matching', 'wiretape.tape'))}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    others = ("anyio", "cassetter", "hypothesispytest")  # what they load is no business of ours
    result = project.run_apart(*(word for name in others for word in ("-p", f"no:{name}")), "-v")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*= wiretape =*")
