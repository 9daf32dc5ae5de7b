"""Strings that resemble secrets: redaction must not change them."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import uuid
from typing import Any

_SOURCE = random.Random(9)
_ALPHABET = string.ascii_letters + string.digits


def rs(n: int, a: str = _ALPHABET) -> str:
    return "".join(_SOURCE.choices(a, k=n))


STRINGS: dict[str, list[str]] = {
    # harmless strings
    "call ids": [
        "call_" + rs(24),
        "toolu_01" + rs(22),
        "fc_" + rs(48),
        "chatcmpl-" + rs(29),
        "msg_" + rs(24),
        "resp_" + rs(48),
        "rs_" + rs(48),
        "req_" + rs(24),
        "file-" + rs(24),
        "asst_" + rs(24),
        "run_" + rs(24),
        "thread_" + rs(24),
        "batch_" + rs(24),
    ],
    "uuids/hashes": [
        str(uuid.UUID(int=_SOURCE.getrandbits(128))),
        hashlib.sha256(b"x").hexdigest(),
        hashlib.sha1(b"x").hexdigest(),
        hashlib.md5(b"x").hexdigest(),
        "sha256:" + hashlib.sha256(b"y").hexdigest(),
        "sha512-" + base64.b64encode(hashlib.sha512(b"z").digest()).decode(),
    ],
    "words": [
        "task-management-system-2024-final",
        "disk-usage-report-v2-production",
        "risk-assessment-2025-q3-summary-A",
        "desk-sk-abcdefghijk-123456",
        "mask-rcnn-resnet50-fpn-v2-coco",
        "ask-me-anything-about-python-3-12",
        "/usr/share/task-queue-1234567890abcdef",
        "sk-learn-pipeline-version-2-final",
        "sk-SK-slovak-locale-2024-version",
        "class sk-toggleable__content-pre2x",
        "sk-estimator-id-1-text-repr-fallback1",
        "sk-container-id-1 div.sk-toggleable",
        "xox-b-some-word-123",
        "hf_transfer_enable_high_perf_download1",
        "hf_hub_download_and_cache_everything_now1",
        "gsk_pharma",
        "AKIAEXAMPLE",
        "npm_config_registry_https_registry_x1",
    ],
    "html/css": [
        '<div class="sk-item sk-dashed-wrapped"></div>',
        ".sk-folding-cube-animation-2s{}",
        "#sk-container-id-1 div.sk-label-container2 {",
        '<label for="sk-estimator-id-12" class="sk-toggleable__label-arrow">',
    ],
    "code": [
        'headers = {"Authorization": "Bearer " + token}',
        '"api_key": os.environ["OPENAI_API_KEY"]',
        "password = getpass.getpass()",
        '"password": {"type": "string"}',
        '{"token": "identifier", "type": "NAME"}',
        "const auth = useAuth();",
        "Authorization: Bearer $TOKEN",
        'curl -H "Authorization: Bearer ${API_KEY}"',
        'client = OpenAI(api_key=os.getenv("KEY"))',
        '"secret": null',
        "if password == confirm_password:",
        "bearer authentication_scheme_name1",
        "Bearer authorization_code_flow_2",
        '"password": "Passwort vergessen?"',
        '"secret": "Santa"',
        'tokens = tokenizer.encode("hello world 1234567890")',
    ],
    "urls": [
        "https://example.com/?key=value1234&page=2",
        "https://x/y?sort_key=created_at_desc",
        "https://www.google.com/maps?key=somewhere_nice",
        "https://h/?primary_key=customer_id_123",
        "https://h/?token=next_page_12345678",
        "git clone git@github.com:org/repo.git",
        "http://user@host/path",
        "ssh://git:22@host",
        "?code=abcdefghij12345",
        "https://youtube.com/watch?v=dQw4w9WgXcQ&key=abc",
        "https://h/?keyword=shoes&signature=true",
        "https://h/#auth=section-three",
    ],
    "json members": [
        json.dumps({"tokens": 123, "max_tokens": 50}),
        json.dumps({"token": "abc"}),
        json.dumps({"token": "page_token_2024_11"}),
        json.dumps({"token": " hello"}),
        json.dumps({"secret": "the butler did it"}),
        json.dumps({"password": "required"}),
        json.dumps({"password": ""}),
        json.dumps({"cookie": "chocolate chip"}),
        json.dumps({"cookies": "2 cups"}),
        json.dumps({"authorization": "approved"}),
        json.dumps({"pwd": "/home/user/project"}),
        json.dumps({"access_key": "Alt+F4"}),
        json.dumps({"accessKey": "s"}),
        json.dumps({"private_key_path": "/etc/x"}),
        json.dumps({"pass": "3 of 5 tests pass99"}),
        json.dumps({"auth": "oauth2-client-credentials"}),
        json.dumps({"auth": "user_123456789abcdef"}),
        json.dumps({"credentials": "same-origin-and-more1"}),
        json.dumps({"secret": False}),
        json.dumps({"jwt": "not configured"}),
        json.dumps({"idToken": "n/a"}),
        json.dumps({"passphrase": "(none)"}),
    ],
}
# Strings shaped like keys: as ids they are replaced, because a key may be sent as an id; as provider state they stay.
SPECIAL: dict[str, Any] = {
    "an id like sk-": {"tool_calls": [{"id": "sk-" + rs(24)}]},
    "an id like gsk_": {"call_id": "gsk_" + rs(24)},
    "signature": {"type": "thinking", "signature": "eyJ" + rs(30) + "." + rs(30) + "." + rs(30)},
    "encrypted content": {"encrypted_content": "sk-" + rs(300)},
    "an image": {"data": "data:image/png;base64," + rs(400) + "sk-" + rs(40)},
}


def values() -> list[tuple[str, Any]]:
    """(what it is, a JSON value that redaction should not change): 209 of them."""
    found: list[tuple[str, Any]] = []
    for kind, texts in STRINGS.items():
        for text in texts:
            found += [(kind, text), (f"{kind} in a tool's result", {"role": "tool", "content": text})]
            if kind == "json members":
                found.append((f"{kind}, parsed", {"arguments": json.loads(text)}))
    return [*found, *SPECIAL.items()]
