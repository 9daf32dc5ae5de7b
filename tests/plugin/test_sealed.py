"""`--wiretape-sealed` runs pytest in a network of its own, or says why it cannot."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project
from tests.support.sealing import need_sealing

from wiretape.adapters import replay_runner
from wiretape.adapters.pytest.sealed import run_sealed
from wiretape.errors import UsageError

pytestmark = pytest.mark.slow

RAW = """
    import socket, subprocess, sys
    RAW = '''
    import socket, sys
    with socket.socket() as raw:
        raw.settimeout(30)
        raw.connect((sys.argv[1], int(sys.argv[2])))
        print(raw.recv(5))
    '''
    def raw(*place):
        command = [sys.executable, "-I", "-S", "-c", RAW, *map(str, place)]
        child = subprocess.run(command, capture_output=True, text=True)
        return child.stdout.strip() or child.stderr.strip().splitlines()[-1]
"""


@pytest.fixture
def outside() -> Iterator[int]:
    """The port of a server of this machine that is none of the tests' own, and greets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello")

        threading.Thread(target=greet, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "with workers"])
def test_a_sealed_run_reaches_loopback_and_what_is_allowed(
    project: Project, model: CountingModel, outside: int, workers: tuple[str, ...]
) -> None:
    need_sealing()
    port = model.url.rpartition(":")[2].removesuffix("/v1")
    project.configure("wiretape_allow_hosts =", f"    127.0.0.1:{outside}")
    project.write(f"""{RAW}
    @pytest.mark.wiretape
    @pytest.mark.parametrize("n", range(2))
    def test_marked(n):
        assert raw("127.0.0.1", {outside}) == "b'hello'"
        assert "ConnectionRefusedError" in raw("127.0.0.1", {port})
    def test_unmarked():
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()
        assert "ConnectionRefusedError" in raw("203.0.113.7", 22)
    """)
    args = ("--wiretape-sealed", *(workers or ("-p", "no:xdist")))
    result = project.run_apart(*args)
    result.assert_outcomes(passed=3)
    assert result.ret == 0
    result.stderr.fnmatch_lines(["wiretape: refused in the sealed network: connection to 203.0.113.7:22"])
    if not workers:
        result.stdout.fnmatch_lines(["wiretape: sealed: only loopback and wiretape_allow_hosts can be reached"])
    assert model.asked == []


def test_a_run_whose_child_goes_to_a_model_past_every_door_fails(project: Project) -> None:
    need_sealing()
    project.configure("wiretape_sealed = true")
    project.write(f"""{RAW}
    @pytest.mark.wiretape
    def test_one():
        raw("api.openai.com", 4711)
    """)
    result = project.run_apart("-p", "no:xdist")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = "wiretape: the sealed run failed: it tried to reach a model: connection to api.openai.com:4711"
    result.stderr.fnmatch_lines([said])


def test_output_signals_and_exit_codes_are_those_of_the_run_inside(project: Project) -> None:
    need_sealing()
    project.write("""
    def test_one():
        print("not captured", os.environ["WIRETAPE_SEALED"] == str(os.stat("/proc/self/ns/net").st_ino))
        pytest.exit("enough", returncode=42)
    """)
    result = project.run_apart("-s", "-p", "no:xdist", "--wiretape-sealed")
    assert result.ret == 42
    result.stdout.fnmatch_lines(["*not captured True*"])


def test_the_variable_alone_seals_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    need_sealing()
    monkeypatch.setenv("WIRETAPE_SEALED", "1")
    project.write("""
    def test_one():
        assert os.environ["WIRETAPE_SEALED"] == str(os.stat("/proc/self/ns/net").st_ino) != "1"
    """)
    project.run_apart("-p", "no:xdist", "--wiretape-sealed").assert_outcomes(passed=1)


def test_without_the_right_to_make_a_network_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(places: object) -> None:
        raise UsageError("--sealed: this system does not permit a sealed network (unshare: Operation not permitted)")

    monkeypatch.setattr(replay_runner, "make_sealed_network", refuse)
    config = SimpleNamespace(
        invocation_params=SimpleNamespace(plugins=None, args=("--wiretape-sealed",)), getini=lambda name: []
    )
    with pytest.raises(
        pytest.UsageError, match=r"^--wiretape-sealed: this system does not permit a sealed network \(unshare: "
    ):
        run_sealed(cast(pytest.Config, config))


@pytest.mark.parametrize("mode", ["once", "update", "all"])
def test_models_cannot_be_asked_in_a_sealed_run(project: Project, model: CountingModel, mode: str) -> None:
    project.write("""
    @pytest.mark.wiretape
    def test_one():
        said("hello")
    """)
    result = project.run("--wiretape-sealed", f"--wiretape-mode={mode}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = f"*--wiretape-sealed blocks models, and --wiretape-mode={mode} calls models live: use one of them*"
    result.stderr.fnmatch_lines([said])
    project.configure("wiretape_sealed = true")  # for the runs that need no model
    result = project.run(f"--wiretape-mode={mode}")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"wiretape: mode {mode}: *; this run is not sealed"])
    assert model.asked == ["hello"]


def test_a_glob_that_lets_models_through_is_refused(project: Project) -> None:
    project.configure("wiretape_allow_hosts =", "    *.openai.com")
    project.write("def test_one(): pass")
    result = project.run("--wiretape-sealed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*includes *, which serves models*"])


def test_a_marker_whose_host_cannot_be_reached_says_where_to_name_it(project: Project) -> None:
    need_sealing()
    project.write("""
    @pytest.mark.wiretape(allow_hosts=["files.example", "localhost"])
    def test_one():
        pass
    """)
    result = project.run_apart("-p", "no:xdist", "--wiretape-sealed")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["allow_hosts=?'files.example'? is not reachable: this run was sealed*"])


if sys.platform != "linux":

    def test_elsewhere_the_option_names_linux(project: Project) -> None:
        project.write("def test_one(): pass")
        result = project.run("--wiretape-sealed")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*needs the network namespaces of Linux*"])
