"""Child processes of a marked test are answered from its tape or refused, by whichever route Python starts them."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from itertools import cycle

import pytest
from tests.support.children import CLIENT, HEAD, ROUTES, ROUTES_WITH_ENVIRONMENT, function
from tests.support.counting import CountingModel
from tests.support.projects import Project
from tests.torture import children as campaign

pytestmark = [pytest.mark.skipif(os.name != "posix", reason="the routes are POSIX's"), pytest.mark.slow]
ENVIRONMENTS = (
    "{}",
    "{**os.environ, 'OTHER': '1'}",
    "os.environ",
    "{name: os.environ[name] for name in os.environ if 'proxy' not in name.lower()}",
)


@pytest.fixture
def children(project: Project, model: CountingModel, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with the tape `t`, on which the model has answered "hello"; the base URL leads to the live model."""
    (project.root / "client.py").write_text(f"DEFAULT = {model.url!r}\n{CLIENT}", encoding="utf-8")
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("PYTHONPATH", str(project.root))
    project.write("""
        @pytest.mark.wiretape("t")
        def test_one():
            said("hello")
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    assert model.asked == ["hello"]
    model.asked.clear()
    return project


def write(project: Project, tests: str) -> None:
    """Tests behind what the routes need, and `run`, a function that starts a child by one of them."""
    run = function("run", ROUTES["subprocess.run"])
    (project.root / "test_it.py").write_text(f"{HEAD}\n{run}\n{textwrap.dedent(tests)}", encoding="utf-8")


def module(routes: dict[str, str], environments: Sequence[str], marker: str, said: str) -> str:
    """Tests that start a child by each of these routes, with these environments in turn, by either way to ask."""
    functions = [
        function(f"route_{number}", code, env)
        for number, (code, env) in enumerate(zip(routes.values(), cycle(environments), strict=False))
    ]
    cases = [
        f"({name!r}, route_{number}, {how!r})"
        for number, (name, how) in enumerate(zip(routes, cycle(("base URL", "proxy")), strict=False))
    ]
    joined = "\n".join(functions)
    return f"""{HEAD}
{joined}
CASES = pytest.mark.parametrize(("name", "route", "how"), [{", ".join(cases)}])

@CASES
@pytest.mark.wiretape{marker}
def test_hello(name, route, how, tmp_path, wiretape):
    assert route(tmp_path / "out", "hello", how).startswith({said!r})
    assert wiretape.stats.calls == 1
"""


OTHER = """
@CASES
@pytest.mark.wiretape("t")
def test_other(name, route, how, tmp_path):
    assert route(tmp_path / "out", "other", how) == "refused 400"
"""


@pytest.mark.parametrize("part", range(4))
def test_a_child_is_answered_from_the_tape_or_refused(children: Project, model: CountingModel, part: int) -> None:
    check(children, dict(list(ROUTES.items())[part::4]), ["None"])
    assert model.asked == []


def test_so_is_a_child_with_an_environment_of_its_own(children: Project, model: CountingModel) -> None:
    check(children, ROUTES_WITH_ENVIRONMENT, ENVIRONMENTS)
    assert model.asked == []


def check(project: Project, routes: dict[str, str], environments: Sequence[str]) -> None:
    tests = module(routes, environments, '("t")', "answer 1 to: hello") + OTHER
    (project.root / "test_it.py").write_text(tests, encoding="utf-8")
    result = project.run_apart("-p", "no:xdist", "--tb=line")
    number = len(routes)
    result.assert_outcomes(passed=number, failed=number)  # a miss of a child fails a test that is content
    assert result.stdout.str().count("messages[0].content differs from call 1 of t.tape") >= number


def test_a_variable_that_the_test_sets_for_a_child_is_kept(children: Project) -> None:
    write(
        children,
        """
    CODE = "import os; print({name: os.environ.get(name) for name in NAMES})"
    @pytest.mark.wiretape("t", repeat=True)
    def test_one(wiretape, monkeypatch):
        def seen(env=None):
            names = ("OPENAI_BASE_URL", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "OPENAI_API_KEY")
            code = CODE.replace("NAMES", repr(names))
            return eval(subprocess.check_output([sys.executable, "-I", "-S", "-c", code], env=env))
        ours = {name: wiretape.environ().get(name) for name in seen()}
        assert seen() == seen(dict(os.environ)) == seen(os.environ) == seen(wiretape.environ()) == ours
        own = {"OPENAI_BASE_URL": "http://own.example/v1", "https_proxy": "", "OPENAI_API_KEY": "sk-own"}
        kept = seen({**os.environ, **own})
        assert kept == {**ours, **own, "HTTPS_PROXY": None}
        monkeypatch.setenv("OPENAI_BASE_URL", "http://own.example/v1")  # for this process, too: it is routed
        assert seen()["OPENAI_BASE_URL"].endswith("/http:own.example/v1")
    """,
    )
    children.run().assert_outcomes(passed=1)


def test_a_child_of_a_thread_that_outlives_its_test_reaches_nothing(children: Project, model: CountingModel) -> None:
    write(
        children,
        """
    over, asked = threading.Event(), []
    def late(out):
        over.wait(60)
        subprocess.run(command(out, "hello", "proxy"))
        subprocess.run(command(out, "hello", "base URL"))
        asked.append(Path(out).read_text())
    @pytest.mark.wiretape("t")
    def test_one(tmp_path):
        global thread
        thread = threading.Thread(target=late, args=(tmp_path / "out",))
        thread.start()
    def test_two():
        over.set()
        thread.join()
        assert asked[0].count("refused ConnectionRefusedError") == 2
    """,
    )
    children.run_apart("-p", "no:xdist").assert_outcomes(passed=2)
    assert model.asked == []


def test_a_child_of_an_unmarked_test_is_left_as_it_is(children: Project, model: CountingModel) -> None:
    write(
        children,
        """
    @pytest.mark.wiretape("t", repeat=True)
    def test_marked(tmp_path):
        assert run(tmp_path / "out", "hello", "base URL") == "answer 1 to: hello"
    def test_unmarked(tmp_path):
        assert run(tmp_path / "out", "hello", "base URL") == "answer 1 to: hello"
        assert os.system(shlex.join(command(tmp_path / "2", "hello", "base URL"))) == 0
    """,
    )
    children.run().assert_outcomes(passed=2)
    assert model.asked == ["hello", "hello"]


@pytest.mark.proxy
def test_children_are_recorded_by_every_kind_of_route(children: Project, model: CountingModel) -> None:
    pytest.importorskip("mitmproxy", reason="mitmproxy is not installed: it needs Python 3.12 and the extra `proxy`")
    routes = ["subprocess.run", "os.system", "os.spawnv", "multiprocessing forkserver", "multiprocessing fork"]
    tests = module({name: ROUTES[name] for name in routes}, ["None"], "", "answer ")
    (children.root / "test_it.py").write_text(tests, encoding="utf-8")
    children.run_apart("-p", "no:xdist", "--wiretape-mode=once").assert_outcomes(passed=5)
    assert model.asked == ["hello"] * 5
    children.run_apart("-p", "no:xdist").assert_outcomes(passed=5)
    assert len(model.asked) == 5


def test_a_recording_without_the_proxy_says_that_children_are_not_recorded(
    children: Project, model: CountingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wiretape.adapters.pytest.child_processes as recording

    monkeypatch.setattr(recording, "find_spec", lambda name: None)
    write(
        children,
        """
    @pytest.mark.wiretape("new")
    def test_one(tmp_path):
        subprocess.run(command(tmp_path / "out", "hello", "base URL"), check=True)
        client.tell(tmp_path / "out", "mine", "base URL")
    """,
    )
    result = children.run("--wiretape-mode=once")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["child processes are not recorded: *mitmproxy, which is not installed*"])
    assert model.asked == ["hello", "mine"]


def test_what_a_forked_copy_reaches_past_the_doors_fails_the_test(children: Project, model: CountingModel) -> None:
    write(
        children,
        """
    import socket
    @pytest.mark.wiretape("t")
    def test_one():
        pid = os.fork()
        if not pid:
            with contextlib.suppress(OSError):
                socket.create_connection(("api.openai.com", 443))
            os._exit(0)
        os.waitpid(pid, 0)
    """,
    )
    result = children.run_apart("-p", "no:xdist")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*api.openai.com:443 is not on the tape*"])


def test_random_children_are_answered_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--seed", "3", "--count", "8"]) == 0, capsys.readouterr().out
