import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from wiretape.adapters.launch.child import (
    CommandNotExecutable,
    CommandNotFound,
    find_command,
    proxy_variables,
    run_child,
)

RUN = """
import os, sys
from wiretape.adapters.launch.child import run_child
sys.exit(run_child([sys.executable, "-c", sys.argv[1]], os.environ))
"""


def start(code: str) -> subprocess.Popen[str]:
    """A process that runs `code` as its child, in a session of its own: no terminal signals the child for us."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("code", [0, 1, 3, 42])
def test_the_exit_code_is_passed_on(code: int) -> None:
    assert run_child([sys.executable, "-c", f"raise SystemExit({code})"], os.environ) == code


def test_the_end_by_a_signal_is_128_and_its_number() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run_child([sys.executable, "-c", code], os.environ) == 128 + signal.SIGKILL


def test_the_child_gets_these_variables_and_no_others() -> None:
    environ = {"PATH": os.environ["PATH"], "ONLY": "this"}
    code = "import os; raise SystemExit(os.environ.get('ONLY') != 'this' or 'HOME' in os.environ)"
    assert run_child([sys.executable, "-c", code], environ) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on_and_the_child_decides(number: signal.Signals) -> None:
    process = start(
        f"""
        import os, signal, sys, time
        def stop(number, frame):
            os.write(1, b"got %d\\n" % number)  # print may be what the signal came into
            sys.exit(7)
        signal.signal({int(number)}, stop)
        print("ready", flush=True)
        time.sleep(20)
        """
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=10)
    assert out == f"got {int(number)}\n"
    assert process.returncode == 7


def test_a_child_that_a_signal_ends_gives_its_number() -> None:
    process = start("import time; print('ready', flush=True); time.sleep(20)")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == 128 + signal.SIGTERM


def test_we_outlive_a_child_that_takes_its_time() -> None:
    process = start(
        """
        import signal, time
        signal.signal(signal.SIGTERM, lambda *_: None)
        print("ready", flush=True)
        for _ in range(10):
            time.sleep(0.05)
        print("done", flush=True)
        """
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=10)
    assert (out, process.returncode) == ("done\n", 0)


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    run_child([sys.executable, "-c", "pass"], os.environ)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_program_that_is_nowhere() -> None:
    with pytest.raises(CommandNotFound, match="no program of that name is on the PATH") as caught:
        run_child(["no-such-agent"], os.environ)
    assert caught.value.exit_code == 127
    with pytest.raises(CommandNotFound, match="no such file"):
        find_command(["./no/such/agent"], os.environ)


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    script = tmp_path / "agent"
    script.write_text("echo hello")
    with pytest.raises(CommandNotExecutable, match="not executable") as caught:
        run_child([str(script)], os.environ)
    assert caught.value.exit_code == 126
    with pytest.raises(CommandNotExecutable, match="is a directory"):
        run_child([f"{tmp_path}/"], os.environ)


def test_a_script_whose_interpreter_is_missing(tmp_path: Path) -> None:
    script = tmp_path / "agent"
    script.write_text("#!/no/such/python\n")
    script.chmod(0o755)
    with pytest.raises(CommandNotFound, match="interpreter"):
        run_child([str(script)], os.environ)


def test_a_program_is_looked_for_on_the_childs_path(tmp_path: Path) -> None:
    script = tmp_path / "my-agent"
    script.write_text("#!/bin/sh\nexit 5\n")
    script.chmod(0o755)
    assert run_child(["my-agent"], {"PATH": f"{tmp_path}:{os.environ['PATH']}"}) == 5


def test_everything_goes_through_the_proxy_loopback_included() -> None:
    variables = proxy_variables(8080)
    assert {variables[name] for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY")} == {
        "http://127.0.0.1:8080"
    }
    assert variables["NO_PROXY"] == variables["no_proxy"] == ""
    assert variables["NODE_USE_ENV_PROXY"] == "1"


def test_waiting_costs_nothing() -> None:
    began = time.process_time()
    run_child([sys.executable, "-c", "import time; time.sleep(0.3)"], os.environ)
    assert time.process_time() - began < 0.1
