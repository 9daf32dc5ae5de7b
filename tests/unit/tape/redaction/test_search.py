"""What counts as a secret in texts and values, what does not, and what a model wrote."""

from __future__ import annotations

import base64
import json
import random
import string
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from tests.support.harmless import values

from wiretape.tape.redaction import Redactor
from wiretape.tape.redaction.arguments import Regions
from wiretape.tape.redaction.key_shapes import rules
from wiretape.tape.redaction.secret_likeness import looks_random

VALUE = "Zx81kqLmP02wErTyUiOpAsDf"
BASIC = base64.b64encode(f"user:{VALUE}".encode()).decode()

SPELLINGS = {
    ".env": f"SERVICE_API_KEY={VALUE}",
    ".env, quoted": f'API_KEY="{VALUE}"',
    ".env, single quotes": f"API_KEY='{VALUE}'",
    ".env with a comment": f"DB_PASSWORD={VALUE} # the old one",
    "export": f"export SERVICE_TOKEN={VALUE}",
    "set of Windows": f"set SERVICE_TOKEN={VALUE}",
    "PowerShell": f'$env:SERVICE_TOKEN = "{VALUE}"',
    "Dockerfile": f"ENV STRIPE_KEY={VALUE}",
    "AWS": f"AWS_SECRET_ACCESS_KEY={VALUE}",
    "YAML": f"db:\n  password: {VALUE}\n  host: x",
    "YAML, quoted": f"db:\n  password: '{VALUE}'",
    "YAML list": f"tokens:\n  - {VALUE}\n  - {VALUE[::-1]}",
    "YAML pair": f"- name: DB_PASSWORD\n  value: {VALUE}",
    "TOML": f'[db]\npassword = "{VALUE}"',
    "INI": f"[db]\npassword = {VALUE}",
    "Python": f'client = Client(api_key="{VALUE}")',
    "Python dict": f"os.environ['API_KEY'] = '{VALUE}'",
    "call": f'setenv("API_KEY", "{VALUE}")',
    "Go": f'apiKey := "{VALUE}"',
    "PHP": f"'api_key' => '{VALUE}',",
    "JavaScript": f"const config = {{ apiKey: '{VALUE}' }}",
    "XML element": f"<db><password>{VALUE}</password></db>",
    "XML attribute": f'<db password="{VALUE}"/>',
    "XML setting": f'<add key="ApiKey" value="{VALUE}"/>',
    "property list": f"<key>API_KEY</key>\n\t<string>{VALUE}</string>",
    "JSON": json.dumps({"api_key": VALUE}, indent=2),
    "JSON list": json.dumps({"tokens": [VALUE, VALUE[::-1]]}),
    "JSON in JSON": json.dumps({"a": json.dumps({"client_secret": VALUE})}),
    "JSON pair": json.dumps({"env": [{"name": "API_KEY", "value": VALUE}]}),
    "JSON inside": json.dumps({"api_key": {"value": VALUE}}),
    "header": f"> X-Api-Key: {VALUE}",
    "header, Bearer": f"> Authorization: Bearer {VALUE}",
    "header, Basic": f"> Authorization: Basic {BASIC}",
    "header, Token": f"> Authorization: Token {VALUE}",
    "cookie": f"> Cookie: theme=dark; session={VALUE}",
    "cookie in JSON": json.dumps({"cookie": VALUE}),
    "set-cookie": f"< Set-Cookie: sid={VALUE}; Path=/; HttpOnly",
    "curl -u": f"curl -u bob:{VALUE} https://h.example/",
    "option": f"deploy --api-token {VALUE} --region eu",
    ".npmrc": f"//r.example/:_authToken={VALUE}",
    ".netrc": f"machine h.example login bob password {VALUE}",
    "prose": f"Your password is {VALUE}",
    "URL": f"https://h.example/?api_key={VALUE}&x=1",
    "URL signature": f"https://h.example/o?X-Amz-Signature={VALUE}&x=1",
    "connection string": f"postgres://app:{VALUE}@db.internal:5432/prod",
    "Redis": f"redis://:{VALUE}@cache:6379/0",
    "Go connection string": f"app:{VALUE}@tcp(db:3306)/prod",
    "ADO connection string": f"Server=h;User Id=app;Password={VALUE};Encrypt=true",
    "Azure connection string": f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={VALUE}==;",
    "LangSmith": "X=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",
    "Slack webhook": "https://hooks.slack.com/services/T00000000/B00000000/AbCdEfGhIjKlMnOpQrStUvWx",
    "SendGrid": f"SG.{VALUE[:22]}.{VALUE}{VALUE[:19]}",
    "Telegram": f"123456789:AA{VALUE}{VALUE[:9]}",
    "PEM": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{VALUE * 2}\n{VALUE * 2}\n-----END OPENSSH PRIVATE KEY-----",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_credentials_in_a_tools_output(spelling: str) -> None:
    text = SPELLINGS[spelling]
    value = {"role": "tool", "tool_call_id": "call_1", "content": text}
    raw = orjson.dumps({"messages": [value]})
    frame = b"data: " + orjson.dumps({"delta": text}) + b"\n\n"
    redactor = Redactor()
    made = [
        redactor.text(text),
        str(redactor.value(value)),
        redactor.data(raw).decode(),
        redactor.frames([frame])[0][0].decode(),
    ]
    alone = [
        Redactor().text(text),
        str(Redactor().value(value)),
        Redactor().data(raw).decode(),
        Redactor().frames([frame])[0][0].decode(),
    ]
    for clean in [*made, *alone]:
        assert "[redacted:" in clean, clean
        for secret in (VALUE, BASIC, "abcd1234ef567890", "AbCdEfGhIjKl"):
            assert secret not in clean
    assert orjson.loads(Redactor().data(raw))["messages"][0]["tool_call_id"] == "call_1"
    again = Redactor()
    assert again.text(alone[0]) is alone[0]
    assert again.data(alone[2].encode()) == alone[2].encode()


def test_at_most_three_of_209_harmless_strings_are_replaced() -> None:
    """Two are: keys by their shape that stand as the id of a call. A key may be sent as an id; a call's id is none."""
    every = values()
    replaced = [kind for kind, value in every if Redactor().value(value) != value]
    assert len(every) == 209
    assert replaced == ["an id like sk-", "an id like gsk_"]


def test_a_working_directory_named_pwd_is_no_password() -> None:
    redactor = Redactor()
    output = json.dumps({"pwd": "/home/user/project-x", "exit": 0})
    value = {"messages": [{"role": "tool", "content": output}]}
    assert redactor.value(value) is value
    call = {"arguments": json.dumps({"path": "/home/user/project-x/a.py"})}
    assert redactor.value(call) is call
    assert redactor.text("PWD=/nix/store/a8f7e6d5c4b3/src") == "PWD=/nix/store/a8f7e6d5c4b3/src"


@pytest.mark.parametrize(
    "value",
    [
        {"password": 84736251937},
        {"api_key": {"value": VALUE}},
        {"credentials": {"user": "bob", "pass": VALUE}},
        {"password": [VALUE]},
        {"apiKeys": [VALUE]},
        {"secrets": {"first": VALUE, "other": [VALUE[::-1]]}},
        {"env": [{"name": "DB_PASSWORD", "value": VALUE}]},
        {"env": [{"value": VALUE, "name": "DB_PASSWORD"}]},
        {"headers": {"Authorization": f"Basic {BASIC}"}},
        {"headers": {"X-Api-Key": VALUE}},
    ],
)
def test_values_of_every_form_under_a_credentials_name(value: Any) -> None:
    texts = [json.dumps(Redactor().value(value))]
    if "first" not in str(value) and list(value.get("env", [{}])[0])[:1] != ["value"]:  # these need the JSON to be read
        texts.append(Redactor().text(json.dumps(value)))
    for clean in texts:
        assert "[redacted:" in clean
        assert VALUE not in clean
        assert BASIC not in clean
        assert "84736251937" not in clean
        json.loads(clean)


@pytest.mark.parametrize(
    "value",
    [
        {"properties": {"token": {"type": "string", "default": VALUE}}},
        {"token": {"type": "string", "description": "ask the administrator", "examples": [VALUE]}},
        {"input_schema": {"type": "object", "properties": {"password": {"type": "string"}}}},
        {"password": 1234567},
        {"tokens": 84736251937},
        {"max_tokens": 84736251937},
        {"x-ratelimit-reset-tokens": "83h10m39.057s"},
    ],
)
def test_schemas_and_counts_stay(value: Any) -> None:
    assert Redactor().value(value) is value


@pytest.mark.slow
def test_no_learnt_value_is_forgotten() -> None:
    redactor = Redactor()
    redactor.learn([("api-key", VALUE)], "")
    others = random.Random(1)
    records = [
        {"access_token": "".join(others.choices(string.ascii_letters + "0123456789", k=24))} for _ in range(3000)
    ]
    assert VALUE not in str(redactor.value({"records": records}))
    inside = base64.b64encode(f"KEY={VALUE}".encode()).decode()
    assert redactor.text(f"it is {VALUE}, {inside}").startswith("it is [redacted:api-key:1], ")
    assert base64.b64encode(VALUE.encode()).decode()[4:24] not in redactor.text(inside)
    for record in records:
        assert redactor.text(f"x{record['access_token']}").startswith("x[redacted:access_token:")


# -- what a model wrote ------------------------------------------------------------------------------------------

PASSWORD = "mellon-of-the-west-gate-7Kq2Zx9v"
CALLS: dict[str, Any] = {
    "anthropic": {"type": "tool_use", "id": "toolu_1", "name": "open", "input": {"password": PASSWORD}},
    "openai.chat": {"tool_calls": [{"function": {"name": "open", "arguments": json.dumps({"password": PASSWORD})}}]},
    "openai.responses": {"type": "function_call", "name": "open", "arguments": json.dumps({"password": PASSWORD})},
    "a program's input": {"type": "custom_tool_call", "name": "sh", "input": f"PASSWORD={PASSWORD} ./open"},
    "gemini": {"functionCall": {"name": "open", "args": {"password": PASSWORD}}},
    "bedrock": {"toolUse": {"toolUseId": "t1", "name": "open", "input": {"password": PASSWORD}}},
    "ollama": {"tool_calls": [{"function": {"name": "open", "arguments": {"password": PASSWORD}}}]},
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_a_password_that_the_model_wrote_stays_in_values_and_in_chunks(call: str, size: int) -> None:
    body = {"messages": [{"role": "assistant", "content": [CALLS[call]]}, {"role": "user", "content": "x"}]}
    redactor = Redactor()
    assert redactor.value(body) is body
    assert redactor.written == ["password"]
    raw = orjson.dumps({**body, "tool_output": {"password": VALUE}})
    assert chunked(Redactor(), raw, size) == raw.replace(VALUE.encode(), b"[redacted:password:1]")
    assert PASSWORD.encode() not in chunked(Redactor(tool_arguments=True), raw, size)
    known = Redactor()
    known.learn([("x-api-key", PASSWORD)], "")
    assert PASSWORD not in str(known.value(body))
    assert PASSWORD.encode() not in chunked(known, raw, size)


def chunked(redactor: Redactor, raw: bytes, size: int) -> bytes:
    """The raw body as the recorder cleans it: in chunks, what may be unfinished held back."""
    regions, held, made = Regions(), b"", []
    for at in range(0, len(raw), size):
        text = held + raw[at : at + size]
        cut = len(text) - redactor.unfinished(text)
        ready, held = text[:cut], text[cut:]
        if ready:
            regions.add(ready)
            made.append(redactor.data(ready, regions))
    regions.add(held)
    return b"".join([*made, redactor.data(held, regions)])


def test_a_key_by_its_shape_is_replaced_though_the_model_wrote_it() -> None:
    key = "sk-ant-api03-AbC9dEf8GhI7jKl6MnO5pQr4"
    call = {"type": "tool_use", "name": "open", "input": {"command": f"curl -H 'x-api-key: {key}'"}}
    assert Redactor().value(call)["input"] == {"command": "curl -H 'x-api-key: [redacted:api-key:1]'"}


def test_operations_of_a_json_patch_on_tool_arguments() -> None:
    operations = [
        {"op": "add", "path": "/messages/1/content/0/input/password", "value": PASSWORD},
        {
            "op": "replace",
            "path": "/messages/1/tool_calls/0/function/arguments",
            "value": json.dumps({"pwd": PASSWORD}),
        },
        {"op": "add", "path": "/input/3/output", "value": json.dumps({"password": VALUE})},
    ]
    made = Redactor().value(operations)
    assert made[:2] == operations[:2]
    assert VALUE not in str(made[2])


# -- rules ---------------------------------------------------------------------------------------------------------


def test_the_vendored_rules_are_read_and_named_for_their_source() -> None:
    assert {"sendgrid-api-token", "postman-api-token", "vault-service-token", "api-key"} <= {r.kind for r in rules()}
    assert len(rules()) > 130


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("PMAK-" + "a1b2c3d4e5f60718293a4b5c-" + "a1b2c3d4e5f60718293a4b5c6d7e8f9012", "postman-api-token"),
        ("dop_v1_" + "a1b2c3d4" * 8, "digitalocean-pat"),
        ("hvs." + VALUE * 4, "vault-service-token"),
        ("AQVN" + VALUE + VALUE[:12], "yandex-api-key"),
        ("dapi" + "a1b2c3d4" * 4, "databricks-api-token"),
        ("glrt-" + VALUE[:20], "gitlab-runner-authentication-token"),
        ("shpat_" + "a1b2c3d4" * 4, "shopify-access-token"),
    ],
)
def test_keys_of_the_vendored_rules(key: str, kind: str) -> None:
    for before in ("", "X=", "/", "%3D", "\\n", "_"):
        assert Redactor().text(f"{before}{key} end") == f"{before}[redacted:{kind}:1] end"
    text = f"word{key} end"
    assert Redactor().text(text) is text


def test_random_values_look_random_and_words_do_not() -> None:
    source = random.Random(5)
    made = ["".join(source.choices(string.ascii_letters + string.digits, k=24)) for _ in range(2000)]
    assert sum(map(looks_random, made)) > 1980
    words = ["getUserById", "same-origin-and-more1", "page_token_2024_11", "iPhoneXSMaxProductID", "order20241101"]
    assert not any(map(looks_random, words))


# -- time ----------------------------------------------------------------------------------------------------------

SOURCE = random.Random(3)


def letters(n: int) -> str:
    return "".join(SOURCE.choices(string.ascii_letters + string.digits, k=n))


UNITS: dict[str, Callable[[], str]] = {
    **{
        unit: lambda unit=unit: unit  # type: ignore[misc]
        for unit in (
            "a", "/", '"', "\\", '\\"', "\n", "[", "eyJ", "eyJabcdefghi.", "sk-", "-a", "___", "SG.", "AKIA", ":AA",
            "Q~", "Bearer ", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----\nabc\n", "-----BEGIN A ", "://", "://a:b",
            "@tcp(", "form-data; name=ab ", 'form-data; name="password"\n', "?key=", "&code=", "token=", "token: ",
            "token:'", 'token:\\"', '"token":', "Cookie: a=b; ", "[redacted:a:1]", "[redacted:", "%41", "curl -u a:b ",
            '"arguments":"{\\"password\\":\\"Zx81kqLmP02w\\"}",', '"arguments":{"password":"Zx81kqLmP02w",',
            '{\\"token\\":\\"abc123def456ghi789\\"},', "sk-abcdef1234567890/", "tokens: [", "- ", "value:",
        )
    },
    "distinct keys": lambda: f"sk-{letters(24)} ",
    "distinct members": lambda: f'{{"token":"{letters(24)}"}},',
    "distinct escaped members": lambda: f'{{\\"token\\":\\"{letters(24)}\\"}},',
    "distinct JWTs": lambda: f"eyJ{letters(30)}.{letters(60)}.{letters(43)} ",
    "distinct URL passwords": lambda: f"postgres://u:{letters(20)}@h/db ",
    "distinct lines": lambda: f"SERVICE_{letters(4)}_TOKEN={letters(24)}\n",
}  # fmt: skip
STAGES: dict[str, Callable[[Redactor, str], object]] = {
    "text": lambda redactor, text: redactor.text(text),
    "data": lambda redactor, text: redactor.data(text.encode()),
    "value": lambda redactor, text: redactor.value({"messages": [{"role": "tool", "content": text}]}),
    "list": lambda redactor, text: redactor.value([text[i : i + 40] for i in range(0, len(text), 40)]),
    "url": lambda redactor, text: redactor.url(f"https://h.example/x?y={text}"),
    "frames": lambda redactor, text: redactor.frames(
        [b"data: " + orjson.dumps({"delta": text[i : i + 40]}) + b"\n\n" for i in range(0, len(text), 40)]
    ),
    "chunks": lambda redactor, text: chunked(redactor, text.encode(), 1000),
}


def spent(stage: str, unit: str, size: int) -> float:
    text = ""
    while len(text) < size:
        text += "".join(UNITS[unit]() for _ in range(64))
    text = text[:size]
    best = 9.0
    for _ in range(2):
        redactor = Redactor()
        start = time.thread_time()
        STAGES[stage](redactor, text)
        best = min(best, time.thread_time() - start)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_four_times_the_text_takes_less_than_six_times_as_long(stage: str) -> None:
    slow = []
    for unit in UNITS:
        small, large = spent(stage, unit, 5_000), spent(stage, unit, 20_000)
        if large > 6 * small + 0.005:  # once more, because other work on the machine counts a little, too
            small, large = spent(stage, unit, 10_000), spent(stage, unit, 40_000)
            if large > 6 * small + 0.005:
                slow.append((unit, small, large))
    assert slow == []
