"""Plants made-up credentials in every place that docs/redaction.md promises, and searches all output for them.

Part one drives the recorder in this process: the journal is read after each chunk. Part two records a program with
`wiretape record`, and kills it with SIGKILL while a stream is open.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import signal
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from tests.torture.campaign import WIRETAPE, Campaign, start

ALPHABET = string.ascii_letters + string.digits
JSON = ("content-type", "application/json")


@dataclass
class Call:
    """One exchange with canaries in it."""

    query: str = ""
    headers: list[tuple[str, str]] = field(default_factory=lambda: [JSON])
    body: bytes = b"{}"
    status: int = 200
    answer_headers: list[tuple[str, str]] = field(default_factory=lambda: [JSON])
    answer: bytes = b"{}"
    messages: list[str] = field(default_factory=list)


def secret(source: random.Random, length: int = 24) -> str:
    """A random value, as keys are: its letters and digits change at least three times."""
    while True:
        made = "".join(source.choices(ALPHABET, k=length))
        if len(re.findall("[0-9]+|[A-Za-z]+", made)) > 3:
            return made


HEADERS = (
    "authorization: Bearer {}", "authorization: Basic {basic}", "x-api-key: {}", "api-key: {}", "x-goog-api-key: {}",
    "proxy-authorization: Bearer {}", "x-vault-secret: {}", "x-some-token: {}", "x-never-heard-of: {}", "dpop: {}",
    "cookie: theme=dark; session={}", "private-token: {}", "x-amz-security-token: {}", "user-agent: a/1 sk-proj-{}",
    "referer: https://h.example/cb?code={}", "x-request-id: sk-proj-{}",
)  # fmt: skip
ANSWER_HEADERS = ("set-cookie: sid={}; Path=/", "location: https://h.example/cb?code={}", "x-new-token: {}",
                  "etag: sk-proj-{}", "x-whatever: {}")  # fmt: skip
QUERIES = ("key", "api_key", "access_token", "token", "sig", "X-Amz-Signature", "client_secret", "password", "auth")
MEMBERS = ("api_key", "apiKey", "API-Key", "authorization", "access_token", "refresh_token", "client_secret",
           "password", "private_key", "secret", "passphrase", "secretAccessKey", "db_password", "sessionToken",
           "cookie", "pwd", "AccountKey", "bot_token", "id_token", "token", "service_token", "apiKeys", "tokens",
           "STRIPE_KEY")  # fmt: skip
SHAPES = ("sk-proj-{}{}", "sk-ant-api03-{}{}", "ghp_{36}", "github_pat_{}", "xoxb-123456789012-{}", "sk_live_{}",
          "AIza{35}", "hf_{34}", "gsk_{}{}", "glpat-{}", "npm_{36}", "ya29.{}", "xai-{}{}", "pplx-{}{}", "nvapi-{}{}",
          "lsv2_pt_{hex32}_{hex10}", "dop_v1_{hex32}{hex32}", "eyJhbGciOiJIUzI1NiJ9.eyJ{}.{}", "Bearer {}{}",
          "-----BEGIN RSA PRIVATE KEY-----\n{}{}{}\n{}{}{}\n-----END RSA PRIVATE KEY-----",
          "postgres://app:{}@db:5432/x", "https://hooks.slack.com/services/T0001/B0001/{}", "123456789:AA{33}",
          "glrt-{20}", "shpat_{hex32}", "dckr_pat_{}")  # fmt: skip
OUTPUTS = (
    "SERVICE_API_KEY={}", 'API_KEY="{}"', "export SERVICE_TOKEN={}", "AWS_SECRET_ACCESS_KEY={}", "DB_PASSWORD={}",
    "db:\n  password: {}", "tokens:\n  - {}", "- name: DB_PASSWORD\n  value: {}", '[db]\npassword = "{}"',
    'client = Client(api_key="{}")', "os.environ['API_KEY'] = '{}'", "const c = {{ apiKey: '{}' }}",
    "'api_key' => '{}'", "<password>{}</password>", '<add key="ApiKey" value="{}"/>',
    "<key>API_KEY</key>\n<string>{}</string>",
    '{{"api_key": "{}"}}', '{{"env": [{{"name": "API_KEY", "value": "{}"}}]}}', '{{"tokens": ["{}"]}}',
    "> X-Api-Key: {}", "> Authorization: Basic {basic}", "> Authorization: Bearer {}", "> Cookie: a=b; session={}",
    "< Set-Cookie: sid={}; Path=/", "//r.example/:_authToken={}", "machine h login bob password {}",
    "curl -u bob:{} https://h.example/", "deploy --api-token {} --region eu", "https://h.example/?api_key={}&x=1",
    "Server=h;Password={};Encrypt=true", "AccountName=x;AccountKey={}==;", "redis://:{}@cache:6379/0",
    "app:{}@tcp(db:3306)/prod", "the password is {}",
)  # fmt: skip


def filled(template: str, source: random.Random) -> tuple[str, list[str]]:
    """A template with canaries in its holes, and the canaries."""
    made: list[str] = []

    def hole(match: re.Match[str]) -> str:
        what = match[1]
        if what.startswith("hex"):
            made.append("".join(source.choices("0123456789abcdef", k=int(what[3:]))))
            return made[-1]
        made.append(secret(source, int(what) if what.isdigit() else 24))
        if what == "basic":
            encoded = base64.b64encode(f"user:{made[-1]}".encode()).decode()
            made.append(encoded[8:-4])
            return encoded
        return made[-1]

    text = re.sub(r"(?<!\{)\{(hex\d+|\d+|basic|)\}(?!\})", hole, template).replace("{{", "{").replace("}}", "}")
    return text, made


def chat(content: str, **more: object) -> bytes:
    call = {"id": "call_1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": content},
    ]
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def streamed(text: str, source: random.Random) -> bytes:
    pieces, at = [], 0
    while at < len(text):
        size = source.randint(1, 7)
        chunk = {"choices": [{"index": 0, "delta": {"content": text[at : at + size]}}]}
        pieces.append(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        at += size
    return b"".join(pieces) + b"data: [DONE]\n\n"


Maker = Callable[[random.Random], tuple[Call, list[str]]]


def in_header(source: random.Random) -> tuple[Call, list[str]]:
    text, made = filled(source.choice(HEADERS), source)
    name, _, value = text.partition(": ")
    echo = chat(f"the tool printed {made[0]}.") if name in ("authorization", "x-api-key", "api-key") else b"{}"
    return Call(headers=[JSON, (name, value)], body=echo), made


def in_answer_header(source: random.Random) -> tuple[Call, list[str]]:
    text, made = filled(source.choice(ANSWER_HEADERS), source)
    name, _, value = text.partition(": ")
    return Call(answer_headers=[JSON, (name, value)]), made


def in_query(source: random.Random) -> tuple[Call, list[str]]:
    made = secret(source, 32)
    return Call(query=f"?alt=sse&{source.choice(QUERIES)}={quote(made)}", body=chat(f"echo {made}")), [made]


def in_member(source: random.Random) -> tuple[Call, list[str]]:
    made = secret(source)
    name = source.choice(MEMBERS)
    value: object = [made] if name in ("apiKeys", "tokens") else made
    inside = json.dumps({"r": [{name: value}]}, indent=source.choice([None, 2]))
    place = source.randrange(3)
    if place == 0:
        return Call(body=chat("t", metadata={"deep": [{"er": {name: value}}]})), [made]
    return (Call(body=chat(inside)) if place == 1 else Call(answer=json.dumps({"output": inside}).encode())), [made]


def in_output(source: random.Random) -> tuple[Call, list[str]]:
    text, made = filled(source.choice([*OUTPUTS, *SHAPES]), source)
    return Call(body=chat(f"$ cat f\nPATH=/bin\n{text}\nlast line")), made


def in_stream(source: random.Random) -> tuple[Call, list[str]]:
    text, made = filled(source.choice(SHAPES), source)
    return Call(
        answer_headers=[("content-type", "text/event-stream")], answer=streamed(f"it is {text} end", source)
    ), made


def in_error(source: random.Random) -> tuple[Call, list[str]]:
    text, made = filled(source.choice(SHAPES), source)
    return Call(status=500, answer_headers=[("content-type", "text/html")], answer=f"<p>no: {text}</p>".encode()), made


def in_socket(source: random.Random) -> tuple[Call, list[str]]:
    text, made = filled(source.choice([*SHAPES, *OUTPUTS]), source)
    return Call(messages=[json.dumps({"type": "x", "text": f"{text}\n"}), f"see {text}\n"]), made


MAKERS: tuple[Maker, ...] = (
    in_header,
    in_answer_header,
    in_query,
    in_member,
    in_output,
    in_stream,
    in_error,
    in_socket,
)


def pieces(data: bytes, source: random.Random) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = source.choice([1, 5, 40, 1000, 100_000])
        yield data[at : at + size]
        at += size


def spelled(canary: str) -> list[bytes]:
    whole = base64.b64encode(canary.encode())
    return [canary.encode(), whole[:-4], quote(canary, safe="").encode()]


def check(campaign: Campaign, where: str, made: dict[str, str], written: bytes) -> None:
    for canary, place in made.items():
        if any(form in written for form in spelled(canary)):
            campaign.fail(f"{place}: {canary[:4]}… stands in {where}")


def record_in_process(campaign: Campaign, folder: Path, number: int, count: int) -> None:
    from wiretape.model.http import Ended
    from wiretape.tape.recording.recorder import Recorder
    from wiretape.tape.redaction import Redactor

    path, source = folder / f"{number}.tape", campaign.source
    recorder = Recorder(path, clock=time.monotonic, started=datetime.now(UTC), redactor=Redactor())
    made: dict[str, str] = {}
    for _ in range(count):
        maker = source.choice(MAKERS)
        call, canaries = maker(source)
        made.update(dict.fromkeys(canaries, maker.__name__))
        campaign.tried["canaries"] += len(canaries)
        x = recorder.begin("POST", f"https://h.example/v1/x{call.query}", "1.1", call.headers)
        for piece in pieces(call.body, source):
            recorder.request_data(x, piece)
        recorder.request_end(x)
        recorder.response(x, 101 if call.messages else call.status, call.answer_headers)
        for message in call.messages:
            recorder.message(x, source.choice(("client", "server")), message)
        for piece in () if call.messages else pieces(call.answer, source):
            recorder.response_data(x, piece)
        journal = path.with_name(f"{path.name}.journal").read_bytes()
        if maker is not in_stream:  # a key that a stream splits over its frames is in the journal in pieces
            check(campaign, "the journal", made, journal)
        recorder.end(x, Ended.COMPLETE)
    recorder.close()
    check(campaign, "the tape", made, path.read_bytes())


class Upstream(BaseHTTPRequestHandler):
    """Answers each call as it says, and sends all but the end of the last one."""

    calls: tuple[Call, ...] = ()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        call = self.calls[int(self.headers["x-title"])]
        self.send_response(call.status)
        for name, value in call.answer_headers:
            self.send_header(name, value)
        last = call is self.calls[-1]
        self.send_header("content-length", str(len(call.answer) + (1000 if last else 0)))
        self.end_headers()
        self.wfile.write(call.answer)
        self.wfile.flush()
        if last:
            time.sleep(30)

    def log_message(self, *_: object) -> None:
        return


AGENT = """
import http.client, json, sys, os, urllib.parse as up
base = up.urlsplit(os.environ["OPENAI_BASE_URL"])
for n, (query, headers, body) in enumerate(json.load(open(sys.argv[1]))):
    c = http.client.HTTPConnection(base.hostname, base.port)
    c.request("POST", base.path + "/chat/completions" + query, body, {**dict(headers), "x-title": str(n)})
    r = c.getresponse()
    if n == int(sys.argv[2]):
        r.read(200); print("streaming", flush=True); sys.stdin.read()
    r.read()
"""


def record_and_kill(campaign: Campaign, folder: Path, count: int) -> None:
    """`wiretape record` with a program; SIGKILL while the last answer is open; then all files are searched."""
    source, made, calls = campaign.source, dict[str, str](), []
    for maker in [source.choice([m for m in MAKERS if m is not in_socket]) for _ in range(count - 1)]:
        call, canaries = maker(source)
        call.status = 200 if call.status == 500 else call.status
        made.update(dict.fromkeys(canaries, f"record: {maker.__name__}"))
        calls.append(call)
    text, canaries = filled(source.choice(SHAPES[:14]), source)
    frame = json.dumps({"choices": [{"index": 0, "delta": {"content": f"it is {text} end"}}]})
    event_stream = [("content-type", "text/event-stream")]
    calls.append(Call(answer_headers=event_stream, answer=f"data: {frame}\n\n: {'x' * 400}\n\n".encode()))
    made.update(dict.fromkeys(canaries, "record: killed stream"))
    campaign.tried["canaries"] += len(made)
    Upstream.calls = tuple(calls)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (folder / "work").mkdir()
    (folder / "calls.json").write_text(json.dumps([(c.query, c.headers, c.body.decode()) for c in calls]))
    (folder / "agent.py").write_text(AGENT)
    tape = folder / "out" / "run.tape"
    tape.parent.mkdir()
    environ = {
        **os.environ,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
        "XDG_STATE_HOME": str(folder / "out" / "state"),
    }
    program = [sys.executable, str(folder / "agent.py"), str(folder / "calls.json"), str(len(calls) - 1)]
    run = subprocess.Popen(
        [WIRETAPE, "record", "--no-stats", "-v", "-o", tape, "--", *program],
        cwd=folder / "work", env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert run.stdout is not None
    begun = run.stdout.readline()
    time.sleep(0.5)
    os.killpg(run.pid, signal.SIGKILL)
    _, errors = run.communicate()
    server.shutdown()
    server.server_close()
    if b"streaming" not in begun:
        campaign.fail(f"the program did not get to its last call: {errors[-300:]!r}")
    for path in (folder / "out").rglob("*"):
        if path.is_file():
            check(campaign, f"{path.name} of a killed recorder", made, path.read_bytes())
    check(campaign, "stderr", made, errors)


def main(argv: list[str]) -> int:
    campaign = start("canaries", argv, 500)
    with tempfile.TemporaryDirectory() as folder:
        if campaign.count >= 100:
            record_and_kill(campaign, Path(folder), 40)
        number = 0
        while campaign.tried["canaries"] < campaign.count:
            number += 1
            record_in_process(campaign, Path(folder), number, 10)
        campaign.tried["tapes"] = number
    return campaign.finish()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
