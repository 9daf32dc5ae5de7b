"""Secrets to plant in live requests, of every kind that wiretape promises to replace, and a tape to replay against."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wiretape.model.http import Ended
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

HOST = "https://api.openai.com"
VARIABLE = "SERVICE_API_KEY"  # of the environment, with a canary in it
BOUNDARY = "b0undary"

# Sends the requests of a plan (a file) to the base URL, and prints every answer.
PROGRAM = """
import base64, json, os, sys, urllib.error, urllib.request
base = os.environ["OPENAI_BASE_URL"]
for asked in json.load(open(sys.argv[1])):
    data = base64.b64decode(asked["body"])
    request = urllib.request.Request(base + asked["target"], data=data, headers=asked["headers"])
    try:
        print(urllib.request.urlopen(request).read().decode())
    except urllib.error.HTTPError as error:
        print(error.read().decode())
"""


@dataclass(frozen=True)
class Planted:
    """A live request with a secret in it. `secret`: what may be printed nowhere. `was`: its body in the recording."""

    kind: str
    secret: str
    body: bytes
    was: bytes
    target: str = "/chat/completions"
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content_type(self) -> str:
        return f"multipart/form-data; boundary={BOUNDARY}" if self.body.startswith(b"--") else "application/json"

    def asked(self) -> dict[str, Any]:
        headers = {"content-type": self.content_type, **self.headers}
        return {"target": self.target, "headers": headers, "body": base64.b64encode(self.body).decode()}


def token(source: random.Random, length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Random characters, a digit and a letter of each case among them."""
    made = source.choices(alphabet, k=length - 3)
    return "".join([*made, source.choice("QWRTZ"), source.choice("23456789"), source.choice("kmnpx")])


def shapes(source: random.Random) -> dict[str, tuple[str, str]]:
    """Kind -> a text with a secret of a known shape, and the part of it that tells the secret."""
    jwt = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIi{token(source, 20)}.{token(source, 43)}"
    core = token(source, 40)
    password = token(source, 14)
    return {
        "openai-key": (secret := f"sk-proj-{token(source, 40)}", secret),
        "anthropic-key": (secret := f"sk-ant-api03-{token(source, 60)}", secret),
        "github-token": (secret := f"ghp_{token(source, 36)}", secret),
        "google-key": (secret := f"AIza{token(source, 35)}", secret),
        "jwt": (jwt, jwt.rpartition(".")[2]),
        "pem": (f"-----BEGIN RSA PRIVATE KEY-----\n{core}\n-----END RSA PRIVATE KEY-----", core),
        "url-password": (f"postgres://app:{password}@db.example/main", password),
    }


def chat(text: str, **more: Any) -> bytes:
    return json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": text}], **more}).encode()


def form(name: str, value: str) -> bytes:
    parts = [("model", "whisper-1"), (name, value)]
    lines = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{part}\r\n' for key, part in parts]
    return "".join([*lines, f"--{BOUNDARY}--\r\n"]).encode()


def planted(source: random.Random, variable: str) -> list[Planted]:
    """One live request of each kind. `variable`: the secret of the environment."""
    made: list[Planted] = []

    def ask(kind: str, secret: str, live: str, recorded: str = "harmless", **more: Any) -> None:
        made.append(Planted(kind, secret, chat(f"{kind}: {live} end"), chat(f"{kind}: {recorded} end"), **more))

    for kind, (text, core) in shapes(source).items():
        ask(kind, core, text)
        note = f"note{len(made)}"  # drift is reported once for each place
        drift, was = (chat(f"drift {kind}", metadata={note: told}) for told in (text, "harmless"))
        made.append(Planted(f"drift-{kind}", core, drift, was))
    for name in ("authorization", "x-api-key", "cookie"):
        secret = token(source, 28)
        value = {"authorization": f"Bearer {secret}", "cookie": f"session={secret}"}.get(name, secret)
        ask(f"header-{name}", secret, f"the header said {secret}", headers={name: value})
    for name in ("key", "token"):
        secret = token(source, 20)
        ask(f"query-{name}", secret, "x", "x", target=f"/chat/completions?{name}={secret}")
    secret = token(source, 14)
    made.append(
        Planted(
            "member",
            secret,
            chat("member", metadata={"login": {"password": secret}}),
            chat("member", metadata={"login": {"user": "me"}}),
        )
    )
    secret = token(source, 14)
    ask("json-in-text", secret, json.dumps({"user": "me", "api_key": secret}), json.dumps({"user": "me"}))
    ask("environment", variable, f"it is {variable}")
    secret = token(source, 24)
    made.append(
        Planted("multipart", secret, form("api_key", secret), form("prompt", "hello"), target="/audio/transcriptions")
    )
    return made


def write_tape(path: Path, cases: Sequence[Planted]) -> None:
    """The recording of the same requests without their secrets."""
    recorder = Recorder(path, clock=lambda: 0.0, started=datetime(2026, 2, 28, tzinfo=UTC), redactor=Redactor())
    answer = {"choices": [{"message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}]}
    for case in cases:
        url = f"{HOST}/v1{case.target.partition('?')[0]}"
        x = recorder.begin("POST", url, "1.1", [("content-type", case.content_type)])
        recorder.request_data(x, case.was)
        recorder.request_end(x)
        recorder.response(x, 200, [("content-type", "application/json")])
        recorder.response_data(x, json.dumps(answer).encode())
        recorder.end(x, Ended.COMPLETE)
    assert not recorder.close().incomplete


def printed(cases: Sequence[Planted], exits: dict[str, str]) -> list[str]:
    """Which secrets appear in which output: `kind in exit`."""
    return [
        f"{case.kind} in {name}"
        for name, text in exits.items()
        for case in cases
        if case.secret in text or json.dumps(case.secret)[1:-1] in text
    ]
