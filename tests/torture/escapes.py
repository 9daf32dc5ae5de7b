"""Try every way out of a replayed program: plain, in process and sealed. Needs Linux, root, `unshare` and `ip`.

The campaign runs in a network namespace whose only peer is `escape_world`: every name resolves to it, and every
connection that arrives there is an escape. Escapes that README and docs/replay.md announce are allowed; others fail.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture import escape_ways
from tests.torture.campaign import WIRETAPE, Campaign, start
from tests.torture.escape_ways import HOST, LINKS, SECRET, WAYS

_INSIDE = "WIRETAPE_ESCAPES_INSIDE"  # set where the campaign runs in its own namespace
_HERE = Path(__file__).parent
# Programs that obey their base URL or their proxy variables, and pages in a browser
_OBEYING = {"base_url", "urllib_https", "urllib_http", "requests_https", "httpx_https", "httpx_ipv6", "openai_client"}
_OBEYING |= {"curl", "curl_tool", *(name for name in WAYS if name.startswith(("redirect_", "fetch_", "page_")))}
# What Python's socket module does not see, and other processes
_BELOW = {"c_socket", "c_getaddrinfo", "c_library", "bash", "python_child", "curl", "curl_tool", "curl_noproxy"}
_BELOW |= {"curl_ipv6", *(name for name in WAYS if name.startswith("fetch_"))}
# Of each mode: the ways that the documentation announces
MODES: dict[str, frozenset[str]] = {
    "plain": frozenset(set(WAYS) - _OBEYING),
    "plain, no TLS": frozenset(set(WAYS) - _OBEYING),
    "in process": frozenset(_BELOW),
    "sealed": frozenset(),
}
_OPTIONS = {"plain": [], "plain, no TLS": ["--no-proxy"], "sealed": ["--sealed"]}
_IN_PROCESS = """
import sys, json, wiretape
sys.path.insert(0, {here!r})
tape, log, *names = sys.argv[1:]
sys.argv[1:] = [log]
import escape_ways
found = {{}}
try:
    with wiretape.replay(tape, repeat=True):
        found = escape_ways.reached(names, escape_ways.LOG)
except wiretape.MissError:
    pass
print(json.dumps(found))
"""


def tape_text() -> str:
    """A call, and an answer with each link."""
    documents: list[dict[str, object]] = [
        {"wiretape": 1, "started": "2026-11-30T12:00:00Z", "recorder": "wiretape 0.1.0", "redacted": []}
    ]
    asked = {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}
    message = {"role": "assistant", "content": SECRET}
    answer = {"id": "c", "object": "chat.completion", "model": "gpt-5", "choices": [{"index": 0, "message": message}]}
    exchanges = [("/chat/completions", asked, 200, {"content-type": "application/json"}, answer)]
    for path, (header, value) in LINKS.items():
        status = 307 if header == "location" else 202
        exchanges.append((path, {"model": "gpt-5", "messages": []}, status, {header: value}, {}))
    for number, (path, body, status, headers, given) in enumerate(exchanges, 1):
        request = {"method": "POST", "url": f"https://{HOST}/v1{path}", "headers": {}, "body": {"json": body}}
        response = {"status": status, "headers": headers, "headers_at": 10, "body": {"json": given}}
        documents.append({"exchange": number, "at": number * 100, "request": request})
        documents.append({"exchange": number, "at": number * 100 + 50, "response": response, "ended": "complete"})
    return "\n".join(json.dumps(one, indent=2) + "\n" for one in documents)


def reached(mode: str, names: list[str], tape: Path, log: Path) -> dict[str, list[str]]:
    """What arrived outside for each way."""
    if mode == "in process":
        command = [sys.executable, "-c", _IN_PROCESS.format(here=str(_HERE)), str(tape), str(log), *names]
    else:
        program = [sys.executable, str(_HERE / "escape_ways.py"), str(log), *names]
        command = [str(WIRETAPE), "replay", str(tape), "--repeat", *_OPTIONS[mode], "--", *program]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=900)
    try:
        found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        raise SystemExit(f"escapes: {mode} printed no result:\n{done.stdout}\n{done.stderr}") from None
    return found


def main(argv: list[str]) -> int:
    if _INSIDE not in os.environ:
        return _enter(argv)
    campaign = start("escapes", argv, count=len(WAYS))  # ways in each mode
    with tempfile.TemporaryDirectory() as folder, _world(Path(folder)) as log:
        tape = Path(folder, "x.tape")
        tape.write_text(tape_text())
        os.environ["XDG_STATE_HOME"] = folder
        for mode, announced in MODES.items():
            names = campaign.source.sample(list(WAYS), min(campaign.count, len(WAYS)))
            found = reached(mode, names, tape, log)
            for name in names:
                _judge(campaign, mode, name, name in announced, found.get(name))
    return campaign.finish()


def _judge(campaign: Campaign, mode: str, name: str, is_announced: bool, arrived: list[str] | None) -> None:
    campaign.tried["ways"] += 1
    if arrived is None:
        campaign.fail(f"{mode}: {name} was not tried")
    elif arrived and is_announced:
        campaign.tried["announced escapes"] += 1
    elif arrived:
        campaign.fail(f"{mode}: {name} reached {arrived[0]}")


def _enter(argv: list[str]) -> int:
    """Run the campaign in a new network namespace."""
    if problem := why_not():
        print(f"escapes: not run: {problem}")
        return 0
    command = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.torture.escapes", *argv]
    kept = {n: v for n, v in os.environ.items() if not n.endswith("_BASE_URL") and "proxy" not in n.lower()}
    return subprocess.run(command, env={**kept, _INSIDE: "1"}).returncode


def why_not() -> str:
    """Why the campaign cannot run here; empty if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "it needs root on Linux"
    missing = [name for name in ("unshare", "nsenter", "ip", "mount") if shutil.which(name) is None]
    return f"it needs {', '.join(missing)}" if missing else ""


@contextmanager
def _world(folder: Path) -> Iterator[Path]:
    """Run `escape_world` in a second namespace, connected to this one; yield its log."""
    log, resolver = folder / "hits.log", folder / "resolv.conf"
    log.touch()
    command = f"read go; exec {sys.executable} {_HERE / 'escape_world.py'} {log}"
    world = subprocess.Popen(["unshare", "--net", "sh", "-c", command], stdin=subprocess.PIPE, encoding="utf-8")
    try:
        time.sleep(0.5)
        near, far = "10.99.0.2/24 fd99::2/64", "10.99.0.1/24 10.99.0.7/24 fd99::1/64"
        _ip("link add v0 type veth peer name v1", f"link set v1 netns {world.pid}", "link set lo up")
        _ip(*(f"addr add {one} dev v0" + (" nodad" if "fd99" in one else "") for one in near.split()), "link set v0 up")
        _ip("link set lo up", *(f"addr add {one} dev v1" for one in far.split()), "link set v1 up", inside=world.pid)
        _ip(f"route add default via {escape_ways.FAR}", f"-6 route add default via {escape_ways.FAR6}")
        resolver.write_text(f"nameserver {escape_ways.FAR}\noptions timeout:1 attempts:1\n")
        subprocess.run(["mount", "--bind", str(resolver), "/etc/resolv.conf"], check=True)
        assert world.stdin is not None
        time.sleep(2)  # until the IPv6 addresses can be bound
        world.stdin.write("go\n")
        world.stdin.flush()
        deadline = time.monotonic() + 20
        while "READY" not in log.read_text():
            if time.monotonic() > deadline:
                raise SystemExit("escapes: the outside world did not start")
            time.sleep(0.1)
        yield log
    finally:
        world.kill()
        world.wait()
        subprocess.run(["umount", "/etc/resolv.conf"], capture_output=True)


def _ip(*commands: str, inside: int | None = None) -> None:
    entering = [] if inside is None else ["nsenter", "-t", str(inside), "-n"]
    for command in commands:
        subprocess.run([*entering, "ip", *command.split()], check=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
