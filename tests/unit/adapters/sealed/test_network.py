"""A sealed network: what a program finds in it, and the error if the system does not permit one."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.sealing import PYTHON, inside, need_sealing

from wiretape.adapters.sealed import namespace_program, network
from wiretape.adapters.sealed.namespace_program import netlink_error, route_to_loopback
from wiretape.adapters.sealed.network import SealedNetwork, make_sealed_network
from wiretape.errors import UsageError

ABOUT = """
import json, os, signal, socket, sys
def tried(address):
    try:
        socket.create_connection(address, 5).close()
    except OSError as error:
        return error.errno
    return 0
print(json.dumps({
    "ids": [os.getuid(), os.getgid()],
    "interfaces": [name for _, name in socket.if_nameindex()],
    "tried": [tried(("192.0.2.1", 5432)), tried((sys.argv[1], 5432)), tried(("127.0.0.1", int(sys.argv[2])))],
    "variables": dict(os.environ),
    "files": sorted(os.listdir("/proc/self/fd"))[:3] + [str(len(os.listdir("/proc/self/fd")))],
}))
"""
# Which network a process is in, and how it takes SIGPIPE: read without another Python, which would ignore it, too.
SHELL = "readlink /proc/self/ns/net; grep SigIgn /proc/self/status"


@pytest.fixture(scope="module")
def sealed() -> Iterator[SealedNetwork]:
    need_sealing()
    made = make_sealed_network([("127.0.0.1", 0)])
    yield made
    made.close()


def test_a_program_finds_loopback_its_sockets_and_refusals(sealed: SealedNetwork) -> None:
    port = sealed.listening[0].getsockname()[1]
    given = {"ONLY": "this", "ODD": "ä\udce4 = \n", "LC_ALL": "C"}
    about = json.loads(inside(sealed, ABOUT, "198.18.7.7", str(port), env=given))
    assert about.pop("variables").items() >= given.items()
    assert about == {
        "ids": [os.getuid(), os.getgid()],
        "interfaces": ["lo"],
        "tried": [errno.ECONNREFUSED, errno.ECONNREFUSED, 0],
        "files": ["0", "1", "2", "4"],  # and the directory itself
    }


def test_variables_are_passed_without_memfd_create_too(sealed: SealedNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of uv and conda, which are built for old systems."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    process = sealed.start(["sh", "-c", "echo $ONLY"], executable="/bin/sh", env={"ONLY": "ä"}, stdout=subprocess.PIPE)
    assert process.communicate(timeout=60)[0].decode() == "ä\n"


def test_a_program_may_open_as_many_files_as_outside_and_wiretape_more(sealed: SealedNetwork) -> None:
    """A connection that is led from inside to its answer takes five of wiretape's."""
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    limited = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048))
from tests.support.sealing import inside
from wiretape.adapters.sealed.network import make_sealed_network
sealed = make_sealed_network([])
print(inside(sealed, {code!r}).strip(), resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, timeout=60, cwd=root)
    assert (done.stdout, done.stderr) == ("256 (2048, 2048)\n", "")


def test_no_descriptor_stays_open_whether_programs_ran_or_not(sealed: SealedNetwork) -> None:
    before = os.listdir("/proc/self/fd")
    assert sealed.start(["true"], executable="/bin/true", env={}).wait(60) == 0
    for executable, folder in (("/nowhere/none", "/"), ("/bin/true", "/nowhere")):
        with pytest.raises(FileNotFoundError):
            sealed.start(["x"], executable=executable, env={}, cwd=folder)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("refused", [errno.EPERM, errno.EACCES])
def test_a_user_namespace_is_tried_if_the_rights_are_missing(refused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def call(name: str, *numbers: int) -> None:
        raise OSError(refused, "no")

    ours: Any = object()
    monkeypatch.setattr(namespace_program, "_call", call)
    monkeypatch.setattr(namespace_program, "_become_own_users", lambda: None)
    monkeypatch.setattr(namespace_program, "bring_up", lambda: ours)
    assert namespace_program.sealed_network() == (True, ours)


def test_the_program_replaces_the_process_that_entered_the_network(sealed: SealedNetwork) -> None:
    """No variable more, no signal ignored, no process between."""
    argv = ["sh", "-c", f"{SHELL}; env; kill -TERM $$"]
    process = sealed.start(argv, executable="/bin/sh", env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE)
    said, _ = process.communicate(timeout=60)
    network, ignored, *variables = said.decode().splitlines()
    assert process.returncode == -signal.SIGTERM
    assert network != os.readlink("/proc/self/ns/net")
    assert int(ignored.split()[1], 16) & (1 << signal.SIGPIPE - 1) == 0
    assert {one.partition("=")[0] for one in variables} <= {"PATH", "PWD", "SHLVL", "_", "OLDPWD"}


def test_a_program_that_cannot_run_raises_the_same_error_as_outside(sealed: SealedNetwork) -> None:
    with pytest.raises(PermissionError):
        sealed.start(["passwd"], executable="/etc/passwd", env={})
    with pytest.raises(FileNotFoundError):
        sealed.start(["none"], executable="/nowhere/none", env={})


def test_two_networks_have_the_same_ports() -> None:
    need_sealing()
    seals = [make_sealed_network([("127.0.0.1", 8080), ("0.0.0.0", 443)]) for _ in range(2)]
    assert [[one.getsockname() for one in sealed.listening] for sealed in seals] == [
        [("127.0.0.1", 8080), ("0.0.0.0", 443)]
    ] * 2
    for sealed in seals:
        sealed.close()


def test_a_port_that_is_needed_twice_is_named() -> None:
    need_sealing()
    with pytest.raises(UsageError, match="--sealed: port 8080 is needed twice: choose another with --port"):
        make_sealed_network([("127.0.0.1", 8080), ("0.0.0.0", 8080)])


CAP_NET_RAW, CAP_SYS_ADMIN = 13, 21


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("right", [CAP_SYS_ADMIN, CAP_NET_RAW])
def test_a_user_namespace_is_made_without_root_s_rights(right: int) -> None:
    need_sealing()
    libc = ctypes.CDLL(None)

    def without() -> None:
        libc.prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP; who is not root has no rights to lose

    ours, theirs = socket.socketpair()
    with ours, theirs:
        argv = [sys.executable, "-I", "-S", network._PROGRAM, "make", str(theirs.fileno()), "127.0.0.1:8080"]
        subprocess.run(argv, pass_fds=[theirs.fileno()], preexec_fn=without, check=True, timeout=60)
        told, descriptors = network._result(ours)
    assert (told, len(descriptors)) == ({"users": True}, 5)
    namespace, users, *sockets = descriptors
    refusals, lookups, listening = (socket.socket(fileno=descriptor) for descriptor in sockets)
    sealed = SealedNetwork(refusals, lookups, (listening,), namespace, users)
    about = json.loads(inside(sealed, ABOUT, "198.18.7.7", "8080"))
    assert (about["ids"], about["interfaces"], about["tried"][2]) == ([os.getuid(), os.getgid()], ["lo"], 0)
    sealed.close()


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UsageError, match="--sealed needs Linux, because it uses network namespaces"):
        make_sealed_network([])


@pytest.mark.parametrize(
    ("told", "said", "shown"),
    [
        (
            {"step": "unshare", "errno": errno.EPERM},
            "",
            (
                "--sealed: this system does not permit a sealed network (unshare: Operation not permitted)\n"
                "  in a container: docker run --cap-add SYS_ADMIN --cap-add NET_ADMIN\n"
                "  elsewhere: run as root\n"
                "  or omit --sealed: programs that ignore proxy variables will then reach the network"
            ),
        ),
        (
            {"step": "unshare", "errno": errno.ENOSPC},
            "",
            "\n  user.max_user_namespaces is too small: raise it (sysctl)",
        ),
        ({"step": "namespace", "errno": errno.ENOENT}, "", "\n  it needs /proc, which is missing\n"),
        ({"step": "watch", "errno": errno.EAFNOSUPPORT}, "", "\n  its kernel lacks this kind of socket, or"),
        ({"step": "unshare", "errno": errno.EINVAL}, "", "\n  its kernel lacks network or user namespaces"),
        ({}, "Traceback\nKeyError: 'x'\n", "--sealed: cannot make a sealed network: KeyError: 'x'"),
        ({}, "", "--sealed: cannot make a sealed network: its process printed no error"),
    ],
)
def test_the_error_has_the_reason_and_the_next_step(
    told: dict[str, object], said: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_apparmor_restricts", lambda: False)
    assert shown in network._explain(told, said)


def test_apparmor_is_named_if_it_restricts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_apparmor_restricts", lambda: True)
    step = "  AppArmor restricts it: run as root, or\n  sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\n"
    assert f"\n{step}" in network._explain({"step": "map", "errno": errno.EPERM}, "")


def test_the_route_is_the_one_that_ip_route_would_make() -> None:
    """`ip route add local 0.0.0.0/0 dev lo src 127.0.0.1`, as strace shows it, without the destination (all)."""
    assert route_to_loopback(1).hex(" ", 4) == (
        "2c000000 18000506 01000000 00000000 02000000 ff03fe02 00000000 08000400 01000000 08000700 7f000001"
    )


def test_an_acknowledgement_has_the_error_number() -> None:
    head = b"\x24\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0"
    assert netlink_error(head + b"\0\0\0\0" + bytes(16)) == 0
    assert netlink_error(head + b"\xff\xff\xff\xff" + bytes(16)) == errno.EPERM


def test_the_program_needs_no_installed_packages() -> None:
    """It is started without site-packages, and from anywhere."""
    code = f"import runpy, sys; sys.argv = ['x', 'none']; runpy.run_path({network._PROGRAM!r}); print('ok')"
    assert subprocess.run([*PYTHON, code], capture_output=True, text=True, timeout=60).stdout == "ok\n"
