"""A sealed network: what a program finds in it, and what is said where there can be none."""

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

from wiretape.adapters.sealed import sealing, sealing_inside
from wiretape.adapters.sealed.sealing import Seal, make_seal
from wiretape.adapters.sealed.sealing_inside import netlink_error, route_to_loopback
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
def seal() -> Iterator[Seal]:
    need_sealing()
    made = make_seal([("127.0.0.1", 0)])
    yield made
    made.close()


def test_a_program_finds_loopback_what_listens_there_and_refusals(seal: Seal) -> None:
    port = seal.listening[0].getsockname()[1]
    given = {"ONLY": "this", "ODD": "ä\udce4 = \n", "LC_ALL": "C"}
    about = json.loads(inside(seal, ABOUT, "198.18.7.7", str(port), env=given))
    assert about.pop("variables").items() >= given.items()
    assert about == {
        "ids": [os.getuid(), os.getgid()],
        "interfaces": ["lo"],
        "tried": [errno.ECONNREFUSED, errno.ECONNREFUSED, 0],
        "files": ["0", "1", "2", "4"],  # and the directory itself
    }


def test_a_python_that_knows_no_files_in_memory_hands_the_variables_over_as_well(
    seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of uv and conda, which are built for old systems."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    process = seal.start(["sh", "-c", "echo $ONLY"], executable="/bin/sh", env={"ONLY": "ä"}, stdout=subprocess.PIPE)
    assert process.communicate(timeout=60)[0].decode() == "ä\n"


def test_a_program_may_open_as_many_files_as_outside_and_wiretape_more(seal: Seal) -> None:
    """A connection that is led from inside to its answer takes five of wiretape's."""
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    limited = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048))
from tests.support.sealing import inside
from wiretape.adapters.sealed.sealing import make_seal
seal = make_seal([])
print(inside(seal, {code!r}).strip(), resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, timeout=60, cwd=root)
    assert (done.stdout, done.stderr) == ("256 (2048, 2048)\n", "")


def test_nothing_is_left_open_by_programs_that_ran_and_programs_that_could_not(seal: Seal) -> None:
    before = os.listdir("/proc/self/fd")
    assert seal.start(["true"], executable="/bin/true", env={}).wait(60) == 0
    for executable, folder in (("/nowhere/none", "/"), ("/bin/true", "/nowhere")):
        with pytest.raises(FileNotFoundError):
            seal.start(["x"], executable=executable, env={}, cwd=folder)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("refused", [errno.EPERM, errno.EACCES])
def test_whichever_way_the_rights_are_missing_users_of_its_own_are_tried(
    refused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(name: str, *numbers: int) -> None:
        raise OSError(refused, "no")

    ours: Any = object()
    monkeypatch.setattr(sealing_inside, "_call", call)
    monkeypatch.setattr(sealing_inside, "_become_own_users", lambda: None)
    monkeypatch.setattr(sealing_inside, "bring_up", lambda: ours)
    assert sealing_inside.sealed_network() == (True, ours)


def test_the_program_has_the_place_of_the_one_that_let_it_in(seal: Seal) -> None:
    """No variable more, no signal ignored, no process between."""
    argv = ["sh", "-c", f"{SHELL}; env; kill -TERM $$"]
    process = seal.start(argv, executable="/bin/sh", env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE)
    said, _ = process.communicate(timeout=60)
    network, ignored, *variables = said.decode().splitlines()
    assert process.returncode == -signal.SIGTERM
    assert network != os.readlink("/proc/self/ns/net")
    assert int(ignored.split()[1], 16) & (1 << signal.SIGPIPE - 1) == 0
    assert {one.partition("=")[0] for one in variables} <= {"PATH", "PWD", "SHLVL", "_", "OLDPWD"}


def test_a_program_that_cannot_run_is_the_error_that_it_is_outside(seal: Seal) -> None:
    with pytest.raises(PermissionError):
        seal.start(["passwd"], executable="/etc/passwd", env={})
    with pytest.raises(FileNotFoundError):
        seal.start(["none"], executable="/nowhere/none", env={})


def test_two_networks_have_the_same_ports() -> None:
    need_sealing()
    seals = [make_seal([("127.0.0.1", 8080), ("0.0.0.0", 443)]) for _ in range(2)]
    assert [[one.getsockname() for one in seal.listening] for seal in seals] == [
        [("127.0.0.1", 8080), ("0.0.0.0", 443)]
    ] * 2
    for seal in seals:
        seal.close()


def test_a_port_that_is_wanted_twice_is_named() -> None:
    need_sealing()
    with pytest.raises(UsageError, match="--sealed: port 8080 is wanted twice: choose another with --port"):
        make_seal([("127.0.0.1", 8080), ("0.0.0.0", 8080)])


CAP_NET_RAW, CAP_SYS_ADMIN = 13, 21


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("right", [CAP_SYS_ADMIN, CAP_NET_RAW])
def test_without_the_rights_of_root_it_takes_a_namespace_of_users_too(right: int) -> None:
    need_sealing()
    libc = ctypes.CDLL(None)

    def without() -> None:
        libc.prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP; who is not root has no rights to lose

    ours, theirs = socket.socketpair()
    with ours, theirs:
        argv = [sys.executable, "-I", "-S", sealing._INSIDE, "make", str(theirs.fileno()), "127.0.0.1:8080"]
        subprocess.run(argv, pass_fds=[theirs.fileno()], preexec_fn=without, check=True, timeout=60)
        told, descriptors = sealing._told(ours)
    assert (told, len(descriptors)) == ({"users": True}, 5)
    network, users, *sockets = descriptors
    refusals, lookups, listening = (socket.socket(fileno=descriptor) for descriptor in sockets)
    seal = Seal(refusals, lookups, (listening,), network, users)
    about = json.loads(inside(seal, ABOUT, "198.18.7.7", "8080"))
    assert (about["ids"], about["interfaces"], about["tried"][2]) == ([os.getuid(), os.getgid()], ["lo"], 0)
    seal.close()


def test_another_system_is_told_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UsageError, match="--sealed needs the network namespaces of Linux, which this system has not"):
        make_seal([])


@pytest.mark.parametrize(
    ("told", "said", "shown"),
    [
        (
            {"step": "unshare", "errno": errno.EPERM},
            "",
            (
                "--sealed: this system makes no sealed network (unshare: Operation not permitted)\n"
                "  in a container: docker run --cap-add SYS_ADMIN --cap-add NET_ADMIN\n"
                "  elsewhere: run as root\n"
                "  or leave --sealed out: what obeys no variables goes past then"
            ),
        ),
        (
            {"step": "unshare", "errno": errno.ENOSPC},
            "",
            "\n  user.max_user_namespaces is too small: raise it (sysctl)",
        ),
        ({"step": "namespace", "errno": errno.ENOENT}, "", "\n  it needs /proc, which is not there\n"),
        ({"step": "watch", "errno": errno.EAFNOSUPPORT}, "", "\n  its kernel is built without this kind of socket, or"),
        ({"step": "unshare", "errno": errno.EINVAL}, "", "\n  its kernel is built without network or user namespaces"),
        ({}, "Traceback\nKeyError: 'x'\n", "--sealed: no sealed network could be made: KeyError: 'x'"),
        ({}, "", "--sealed: no sealed network could be made: the process that makes it said nothing"),
    ],
)
def test_where_it_cannot_be_had_the_reason_and_the_next_step_are_told(
    told: dict[str, object], said: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "_apparmor_restricts", lambda: False)
    assert shown in sealing._why_not(told, said)


def test_apparmor_is_named_where_it_is_what_restricts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "_apparmor_restricts", lambda: True)
    step = "  AppArmor restricts it: run as root, or\n  sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\n"
    assert f"\n{step}" in sealing._why_not({"step": "map", "errno": errno.EPERM}, "")


def test_the_route_is_the_one_that_ip_route_would_make() -> None:
    """`ip route add local 0.0.0.0/0 dev lo src 127.0.0.1`, as strace shows it, without the destination (all)."""
    assert route_to_loopback(1).hex(" ", 4) == (
        "2c000000 18000506 01000000 00000000 02000000 ff03fe02 00000000 08000400 01000000 08000700 7f000001"
    )


def test_an_acknowledgement_tells_the_error() -> None:
    head = b"\x24\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0"
    assert netlink_error(head + b"\0\0\0\0" + bytes(16)) == 0
    assert netlink_error(head + b"\xff\xff\xff\xff" + bytes(16)) == errno.EPERM


def test_nothing_that_is_installed_is_needed_inside() -> None:
    """It is started without site-packages, and from anywhere."""
    code = f"import runpy, sys; sys.argv = ['x', 'none']; runpy.run_path({sealing._INSIDE!r}); print('ok')"
    assert subprocess.run([*PYTHON, code], capture_output=True, text=True, timeout=60).stdout == "ok\n"
