"""Redirects, polling addresses and unusual base URLs: recorded, then replayed with the upstream still alive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mitmproxy.addons", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.scripted_server import CHAT, Headers, Scripted, scripted_server

import wiretape
from wiretape.errors import MissError
from wiretape.tape.reading.reader import read_tape

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
QUIET = {name: value for name, value in os.environ.items() if not name.endswith(("_BASE_URL", "_API_KEY"))}
# A client that ignores proxy variables, so a link that leaves the route reaches the real server.
ASK = """
import httpx, json, os, sys
client = httpx.Client(follow_redirects=True, trust_env=False, timeout=20)
base = os.environ["OPENAI_BASE_URL"]
for path in sys.argv[1:]:
    body = {"model": "m", "messages": [{"role": "user", "content": path}]}
    answer = client.post(base + path, json=body)
    for name in ("operation-location", "azure-asyncoperation"):
        if name in answer.headers:
            answer = client.get(answer.headers[name])
    if "next" in answer.links:
        answer = client.get(httpx.URL(str(answer.url)).join(answer.links["next"]["url"]))
    print(answer.status_code, answer.text[:400].replace(chr(10), " "))
"""
PAST = """
import httpx, sys
answer = httpx.post(sys.argv[1], json={"model": "m", "messages": []}, follow_redirects=True)
print(answer.status_code, answer.headers.get("location"), [one.headers["location"] for one in answer.history])
"""
OPENAI = """
import openai
answer = openai.OpenAI(max_retries=0).chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
print(answer.choices[0].message.content)
"""


@dataclass
class Bench:
    """The `wiretape` command on one tape."""

    tape: Path
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, program: str = ASK, words: tuple[str, ...] = ()) -> Any:
        command = [sys.executable, "-m", "wiretape", *arguments, "--", sys.executable, "-c", program, *words]
        environ = {**QUIET, "XDG_STATE_HOME": str(self.tape.parent / "state"), **self.environ}
        return subprocess.run(command, capture_output=True, encoding="utf-8", env=environ, timeout=60)

    def record(self, *words: str, program: str = ASK) -> Any:
        return self.run("record", "--no-stats", "-o", str(self.tape), program=program, words=words)

    def replay(self, *words: str, program: str = ASK) -> Any:
        return self.run("replay", "--no-proxy", str(self.tape), program=program, words=words)

    def urls(self) -> list[tuple[str, int]]:
        tape = read_tape(self.tape)
        return [(x.request.url, x.response.status if x.response else 0) for x in tape.exchanges]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "x.tape")


@contextmanager
def moving(foreign: str = "") -> Iterator[Scripted]:
    """A model that redirects, by what its path says, to itself or to `foreign`."""

    def script(path: str, host: str) -> tuple[int, Headers, bytes]:
        here = f"http://{host}"
        match path.partition("?")[0].rpartition("/")[2]:
            case "relative":
                return 307, {"location": path + "/"}, b""
            case "absolute":
                return 308, {"location": f"{here}{path}/"}, b""
            case "schemeless":
                return 301, {"location": f"//{host}{path}/"}, b""
            case "up":
                return 303, {"location": "../../v1/done/"}, b""
            case "polled":
                return 202, {"operation-location": f"{here}/v1/operations/7"}, b""
            case "azure":
                return 201, {"azure-asyncoperation": f"{here}/v1/operations/8"}, b""
            case "pages":
                return 200, {"link": f'<{here}/v1/page/?n=2>; rel="next"'}, b"{}"
            case "query":
                return 302, {"location": f"{here}/v1/found/?after=cursor-7&n=2#part"}, b""
            case "away":
                return 307, {"location": f"{foreign}/elsewhere"}, b""
        return 200, {"content-type": "application/json"}, json.dumps(CHAT).encode()

    with scripted_server(script) as server:
        yield server


PATHS = ("/relative", "/absolute", "/schemeless", "/up", "/polled", "/azure", "/pages", "/query")


def test_a_client_stays_on_its_route_and_a_replay_answers_every_hop(bench: Bench) -> None:
    with moving() as model:
        bench.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{model.port}/v1"
        recorded = bench.record(*PATHS)
        assert [line[:3] for line in recorded.stdout.splitlines()] == ["200"] * len(PATHS), recorded.stderr
        assert len(bench.urls()) == len(model.seen) == 2 * len(PATHS)
        assert {url.split("/")[2] for url, _ in bench.urls()} == {f"127.0.0.1:{model.port}"}
        first = read_tape(bench.tape).exchanges[2].response
        assert first is not None
        assert first.headers["location"] == f"http://127.0.0.1:{model.port}/v1/absolute/"  # as it came
        model.seen.clear()
        replayed = bench.replay(*PATHS)
        assert (replayed.stdout, replayed.returncode) == (recorded.stdout, 0), replayed.stderr
        assert model.seen == []


@pytest.mark.parametrize("recorded_before", ["now", "by version 0.1"])
def test_a_redirect_to_an_unrecorded_host_is_refused_with_its_name(bench: Bench, recorded_before: str) -> None:
    """Version 0.1 let the client leave the route, so that the hop is not on its tapes."""
    with scripted_server() as elsewhere, moving(f"http://localhost:{elsewhere.port}") as model:
        bench.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{model.port}/v1"
        if recorded_before == "now":
            path, target = "/away", f"http://localhost:{elsewhere.port}/elsewhere"
            recorded = bench.record(path)
            assert f"127.0.0.1:{model.port} redirects its client to {target}, which is not changed" in recorded.stderr
            assert len(elsewhere.seen) == 1  # nothing that the program receives was changed
        else:
            path, target = "/absolute", f"http://127.0.0.1:{model.port}/v1/absolute/"
            bench.record(path)
            documents = bench.tape.read_text().split("\n\n")
            bench.tape.write_text("\n\n".join(one for one in documents if '"exchange": 2' not in one) + "\n")
        assert len(bench.urls()) == 1
        model.seen.clear(), elsewhere.seen.clear()
        replayed = bench.replay(path)
        assert (replayed.returncode, replayed.stdout[:3]) == (3, "400")
        said = " ".join(replayed.stderr.split())
        assert f"redirects to {target}, which is not on the tape" in said
        assert model.seen == elsewhere.seen == []


def test_nothing_is_rewritten_through_the_proxy(bench: Bench) -> None:
    with moving() as model:
        url = f"http://127.0.0.1:{model.port}/v1/absolute"
        recorded = bench.record(url, program=PAST)
        assert recorded.stdout == f"200 None ['{url}/']\n"
        assert [found for found, _ in bench.urls()] == [url, f"{url}/"]
        model.seen.clear()
        replayed = bench.replay(url, program=PAST)
        assert (replayed.stdout, replayed.returncode, model.seen) == (recorded.stdout, 0, [])


def test_a_link_with_a_secret_finds_its_answer(bench: Bench) -> None:
    def script(path: str, host: str) -> tuple[int, Headers, bytes]:
        if path.endswith("/signed"):
            return 302, {"location": f"/v1/blob?token={'k9Xw2' * 8}"}, b""
        return 200, {"content-type": "text/plain"}, b"the blob"

    with scripted_server(script) as model:
        bench.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{model.port}/v1"
        recorded = bench.record("/signed")
        assert recorded.stdout == "200 the blob\n"
        assert "k9Xw2" not in bench.tape.read_text()
        model.seen.clear()
        replayed = bench.replay("/signed")
        assert (replayed.stdout, replayed.returncode, model.seen) == ("200 the blob\n", 0, [])


def test_a_replay_in_process_refuses_a_hop_that_is_not_on_its_tape(tmp_path: Path) -> None:
    import httpx
    import requests

    with scripted_server() as elsewhere, moving(f"http://localhost:{elsewhere.port}") as model:
        url = f"http://127.0.0.1:{model.port}/v1/away"
        for client in (httpx.Client(), requests.Session()):
            options = {"follow_redirects": True} if isinstance(client, httpx.Client) else {}
            tape = tmp_path / f"{type(client).__module__}.tape"
            with client:
                with wiretape.record(tape):
                    assert client.post(url, json={}, **options).status_code == 200  # type: ignore[arg-type]
                documents = tape.read_text().split("\n\n")
                tape.write_text("\n\n".join(one for one in documents if '"exchange": 2' not in one) + "\n")
                model.seen.clear(), elsewhere.seen.clear()
                with pytest.raises(MissError, match="x1 redirects to http://localhost"), wiretape.replay(tape):
                    assert client.post(url, json={}, **options).status_code == 400  # type: ignore[arg-type]
        assert model.seen == elsewhere.seen == []


@pytest.mark.parametrize(
    ("base", "path", "authorization"),
    [
        ("http://bob:p%40ss@127.0.0.1:{port}/v1", "/v1/chat/completions", "Basic Ym9iOnBAc3M="),
        ("http://127.0.0.1:{port}/v1?api-version=2024", "/v1/?api-version=2024chat/completions", "Bearer sk-gateway"),
        ("HTTP://127.0.0.1:{port}/a%2Fb/v1#x", "/a%2Fb/v1/chat/completions", "Bearer sk-gateway"),
    ],
)
def test_an_unusual_base_url_keeps_its_target(bench: Bench, base: str, path: str, authorization: str) -> None:
    """Like openai's client: user info takes precedence over the key, and a query replaces the path."""
    with scripted_server() as gateway:
        bench.environ |= {"OPENAI_BASE_URL": base.format(port=gateway.port), "OPENAI_API_KEY": "sk-gateway"}
        recorded = bench.record(program=OPENAI)
        assert recorded.stdout == "hello\n", recorded.stderr
        assert gateway.seen == [("POST", path, f"127.0.0.1:{gateway.port}", authorization)]
        assert bench.urls() == [(f"http://127.0.0.1:{gateway.port}{path}", 200)]
        assert "p%40ss" not in bench.tape.read_text() + recorded.stderr
        gateway.seen.clear()
        replayed = bench.replay(program=OPENAI)
        assert (replayed.stdout, replayed.returncode, gateway.seen) == ("hello\n", 0, [])


@pytest.mark.parametrize("value", ["${GATEWAY}/v1", "gateway.example/v1", "http+unix://%2Frun%2Fgw.sock/v1"])
def test_a_base_url_that_cannot_be_routed_is_kept_and_named(bench: Bench, value: str) -> None:
    show = "import os; print(os.environ.get('OPENAI_BASE_URL'), os.environ.get('OPENAI_API_BASE'))"
    bench.environ["OPENAI_BASE_URL"] = value
    recorded = bench.record(program=show)
    assert recorded.stdout == f"{value} None\n"
    assert "warning: OPENAI_BASE_URL stays unchanged, because its value is not an http:// or" in recorded.stderr


def test_an_ipv6_address_keeps_its_brackets(bench: Bench) -> None:
    program = ASK + PAST.replace("sys.argv[1]", "os.environ['TOOL']")
    try:
        with scripted_server(address="::1") as model:
            here = f"[::1]:{model.port}"
            bench.environ |= {"OPENAI_BASE_URL": f"http://{here}/v1", "TOOL": f"http://{here}/tool"}
            recorded = bench.record("/chat/completions", program=program)
            assert recorded.stdout.splitlines()[1] == "200 None []", recorded.stderr
            assert [host for _, _, host, _ in model.seen] == [here, here]
            assert [url for url, _ in bench.urls()] == [f"http://{here}/v1/chat/completions", f"http://{here}/tool"]
            model.seen.clear()
            replayed = bench.replay("/chat/completions", program=program)
            assert (replayed.stdout, replayed.returncode, model.seen) == (recorded.stdout, 0, [])
            assert "played      2 calls (2 exact)" in replayed.stderr
    except OSError as error:
        pytest.skip(f"no IPv6 on this machine: {error}")


def test_a_tape_that_has_ipv6_addresses_without_brackets_replays(bench: Bench) -> None:
    """As version 0.1 wrote them."""
    with scripted_server() as gone:
        bench.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{gone.port}/v1"
        bench.record("/chat/completions", "/../tool")
    text = bench.tape.read_text()
    bench.tape.write_text(text.replace(f"http://127.0.0.1:{gone.port}", "http://::1:9000"))
    bench.environ["OPENAI_BASE_URL"] = "http://[::1]:9000/v1"
    replayed = bench.replay("/chat/completions", "/../tool")
    assert replayed.returncode == 0
    assert "played      2 calls (2 exact)" in replayed.stderr
