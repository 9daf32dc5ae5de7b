"""The Redactor as its users see it: exact values in, exact values out."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from wiretape.errors import UsageError
from wiretape.tape.redaction import Redactor, is_placeholder, matches

KEY = "sk-ant-api03-AbC9dEf8GhI7jKl6MnO5pQr4"
TOKEN = "zX81-plain-Credential-77-without-shape"
RANDOM = "Zx81kqLmP02wErTyUiOpAsDf"


def knowing(*secrets: str) -> Redactor:
    redactor = Redactor()
    redactor.learn([("authorization", f"Bearer {secret}") for secret in secrets], "")
    return redactor


# -- headers -----------------------------------------------------------------------------------------------------


def test_headers_are_an_allow_list_and_every_name_stays() -> None:
    pairs = [
        ("Authorization", f"Bearer {KEY}"),
        ("x-api-key", KEY),
        ("content-type", "application/json"),
        ("x-claude-code-agent-id", "a-1"),
        ("x-brand-new-thing", "who knows"),
        ("X-Request-Id", "req_011CSHoEeqs5C35K2UUqR7Fy"),
    ]
    redactor = Redactor()
    assert redactor.headers(pairs) == [
        ("Authorization", "Bearer [redacted:authorization:1]"),
        ("x-api-key", "[redacted:authorization:1]"),
        ("content-type", "application/json"),
        ("x-claude-code-agent-id", "a-1"),
        ("x-brand-new-thing", "[redacted]"),
        ("X-Request-Id", "req_011CSHoEeqs5C35K2UUqR7Fy"),
    ]
    assert redactor.kinds == {"authorization", "header"}


def test_no_first_characters_of_a_key_are_kept_wherever_it_is_sent() -> None:
    places = [
        ("x-goog-api-key", KEY),
        ("api-key", KEY),
        ("ocp-apim-subscription-key", KEY),
        ("proxy-authorization", f"Basic {KEY}"),
        ("cookie", f"a=b; session={KEY}"),
        ("set-cookie", f"session={KEY}; Path=/; HttpOnly"),
        ("mcp-session-id", KEY),
        ("chatgpt-account-id", KEY),
        ("sec-websocket-protocol", f"realtime, openai-insecure-api-key.{KEY}"),
    ]
    for name, value in Redactor().headers(places):
        assert KEY[:6] not in value, name
        assert "redacted:" in value, name


def test_a_signature_that_is_new_for_each_message_gets_no_number_and_is_not_remembered() -> None:
    redactor = Redactor()
    for n in range(500):
        value = f"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us/x, Signature={n:064x}"
        redactor.learn([("authorization", value)], "")
        assert redactor.headers([("authorization", value)]) == [
            ("authorization", "AWS4-HMAC-SHA256 [redacted:authorization]")
        ]
    assert redactor.text(f"{7:064x}") == f"{7:064x}"


def test_what_a_server_sets_anew_each_time_is_looked_for_in_its_plain_spelling() -> None:
    redactor = knowing(TOKEN)
    for n in range(1000):
        redactor.learn([("set-cookie", f"__cf_bm=q{n:040x}; path=/; expires=Thu, 01-Jan-26 00:00:00 GMT")], "")
    first, last = f"q{0:040x}", f"q{999:040x}"
    assert redactor.text(f"{last} {TOKEN} {first}") == (
        "[redacted:set-cookie:1] [redacted:authorization:1] [redacted:set-cookie:2]"
    )
    assert len(redactor._learned._forms) < 1000 + 20


def test_both_halves_of_basic_and_a_key_in_a_subprotocol_are_learnt() -> None:
    redactor = Redactor()
    redactor.learn([("authorization", "Basic bWU6Y29ycmVjdC1ob3JzZS04OC1iYXR0ZXJ5")], "")
    assert redactor.text("pw correct-horse-88-battery") == "pw [redacted:authorization:1]"
    redactor.learn([("sec-websocket-protocol", f"realtime, openai-insecure-api-key.{TOKEN}, openai-beta.v1")], "")
    assert redactor.text(f"it is {TOKEN}") == "it is [redacted:sec-websocket-protocol:1]"


def test_cookie_attributes_are_no_secrets() -> None:
    redactor = Redactor()
    redactor.learn([("set-cookie", "a=b; Path=/a/long/path/to/somewhere; Domain=.very-long.example.com")], "")
    assert redactor.text("see /a/long/path/to/somewhere at .very-long.example.com") == (
        "see /a/long/path/to/somewhere at .very-long.example.com"
    )


# -- urls --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"https://h/v1beta/m:gen?alt=sse&key={KEY}", "https://h/v1beta/m:gen?alt=sse&key=[redacted:key:1]"),
        ("https://h/x?api_key=ab&y=1", "https://h/x?api_key=[redacted:api_key:1]&y=1"),
        ("https://me:hunter2@h:8080/x", "https://%5Bredacted:url-password:1%5D@h:8080/x"),
        ("https://h/o?d=1&X-Amz-Signature=ab12", "https://h/o?d=1&X-Amz-Signature=[redacted:x-amz-signature:1]"),
        ("https://h/oauth?access_token=a%2Bb#frag", "https://h/oauth?access_token=[redacted:access_token:1]#frag"),
        ("https://h/cb#access_token=abc&x=1", "https://h/cb#access_token=[redacted:access_token:1]&x=1"),
        ("https://h/v1/messages?beta=true", "https://h/v1/messages?beta=true"),
        ("https://h/x?max_tokens=5&token_count=7&id=k", "https://h/x?max_tokens=5&token_count=7&id=k"),
    ],
)
def test_urls(url: str, expected: str) -> None:
    redactor = Redactor()
    redactor.learn([], url)
    assert redactor.url(url) == expected
    assert redactor.url(expected) == expected
    from urllib.parse import urlsplit

    assert urlsplit(expected).hostname == urlsplit(url).hostname


def test_a_redirect_keeps_its_place_and_loses_its_query() -> None:
    made = Redactor().headers([("location", "https://files.example/dl/1?Policy=abc&Key-Pair-Id=9")])
    assert made == [
        ("location", "https://files.example/dl/1?Policy=[redacted:policy:1]&Key-Pair-Id=[redacted:key-pair-id:1]")
    ]


# -- JSON --------------------------------------------------------------------------------------------------------


def test_json_without_secrets_is_the_very_same_object() -> None:
    value = {
        "a": [{"b": "text", "max_tokens": 5, "usage": {"total_tokens": 7, "cached_tokens": 0}}],
        "tool_choice": "auto",
    }
    assert Redactor().value(value) is value


def test_what_did_not_change_stays_the_same_object() -> None:
    message = {"role": "user", "content": "hello"}
    value = {"messages": [message, {"role": "user", "content": f"my key is {KEY}"}]}
    made = Redactor().value(value)
    assert made["messages"][0] is message
    assert made["messages"][1] == {"role": "user", "content": "my key is [redacted:api-key:1]"}
    assert value["messages"][1]["content"].endswith(KEY)


CREDENTIAL_NAMES = """
    api_key apikey apiKey API-KEY access_token refresh_token client_secret password secret authorization_token
    authorization id_token OPENAI_API_KEY private_key webhook_secret aws_secret_access_key
"""


@pytest.mark.parametrize("name", CREDENTIAL_NAMES.split())
def test_members_named_like_credentials(name: str) -> None:
    assert Redactor().value({"x": [{name: RANDOM}]})["x"][0][name].startswith("[redacted:")
    assert RANDOM not in Redactor().value({"content": json.dumps({name: RANDOM})})["content"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", "128"),
        ("token", "Hello"),  # of log probabilities
        ("page_token", "CAoQAA12345678901234"),
        ("next_page_token", "CAoQAA12345678901234"),
        ("continuation_token", "CAoQAA12345678901234"),
        ("progressToken", "9f8e7d6c5b4a39281706"),
        ("key", "user_profile_photo_2024_01"),
        ("signature", "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds7"),
        ("encrypted_content", "gAAAAABmFq-sk-XyZ0123456789abcdefghij"),
        ("tool_call_id", "call_abc123def456ghi789"),
        ("secretary", "Bob"),
        ("authorized", "yes"),
        ("prompt_cache_key", "main-agent-cache-key"),
    ],
)
def test_members_that_only_sound_like_credentials(name: str, value: str) -> None:
    whole = {"items": [{name: value}], "arguments": json.dumps({name: value})}
    assert Redactor().value(whole) is whole


def test_a_token_member_counts_when_its_value_looks_like_one() -> None:
    assert Redactor().value({"token": "9f8e7d6c5b4a39281706aa"}) == {"token": "[redacted:token:1]"}


def test_schemas_keep_their_definitions() -> None:
    schema = {
        "type": "object",
        "properties": {
            "password": {"type": "string", "description": "the user's password", "enum": ["a", "b"]},
            "api_key": {"type": ["string", "null"]},
        },
        "required": ["password", "api_key"],
        "dependentRequired": {"password": ["api_key"]},
    }
    value = {"tools": [{"name": "login", "input_schema": schema}], "as_text": json.dumps(schema)}
    assert Redactor().value(value) is value


def test_hosted_mcp_servers() -> None:
    value = {
        "tools": [
            {
                "type": "mcp",
                "server_label": "git",
                "server_url": "https://mcp.example/?api_key=Zx81kQpLw92mNb",
                "authorization": "short",
                "headers": {"X-Custom": "whatever it is", "Content-Type": "application/json"},
            }
        ],
        "mcp_servers": [{"type": "url", "url": "https://mcp.example/sse", "authorization_token": "tok"}],
    }
    made = Redactor().value(value)
    assert made["tools"][0] == {
        "type": "mcp",
        "server_label": "git",
        "server_url": "https://mcp.example/?api_key=[redacted:api_key:1]",
        "authorization": "[redacted:authorization:1]",
        "headers": {"X-Custom": "[redacted:x-custom:1]", "Content-Type": "application/json"},
    }
    assert made["mcp_servers"][0]["authorization_token"] == "[redacted:authorization_token:1]"


def test_operations_of_a_json_patch_are_known_by_their_paths() -> None:
    patch = [
        {"op": "replace", "path": "/tools/0/authorization", "value": "short"},
        {"op": "replace", "path": "/tools/0/headers/X-Custom", "value": "whatever"},
        {"op": "add", "path": "/messages/-", "value": {"role": "user", "content": "hi"}},
        {"op": "add", "path": "/tools/0/function/parameters/properties/password", "value": {"type": "string"}},
        {"op": "remove", "path": "/password"},
    ]
    made = Redactor([r"\b(?:op|add|path|value|remove)\b"]).value(patch)
    assert made[0] == {"op": "replace", "path": "/tools/0/authorization", "value": "[redacted:authorization:1]"}
    assert made[1]["value"] == "[redacted:x-custom:1]"
    assert made[2:] == patch[2:]


def test_a_value_of_a_credential_member_is_found_elsewhere_too_even_before_it() -> None:
    value = {"a": f"before {RANDOM}", "config": {"client_secret": RANDOM}, "z": f"after {RANDOM}"}
    assert Redactor().value(value) == {
        "a": "before [redacted:client_secret:1]",
        "config": {"client_secret": "[redacted:client_secret:1]"},
        "z": "after [redacted:client_secret:1]",
    }


def test_base64_media_stays() -> None:
    media = "/9j/" + "AKIAIOSFODNN7ABCDEF0/" * 40
    value = {"source": {"type": "base64", "data": media}, "image_url": f"data:image/png;base64,{media}"}
    assert Redactor([r"AKIA\w+"]).value(value) is value


def test_names_are_kept_from_user_patterns_and_not_from_known_secrets() -> None:
    redactor = Redactor(["messages"])
    redactor.learn([("x-api-key", TOKEN)], "")
    assert redactor.value({"messages": ["my messages", {TOKEN: 1}]}) == {
        "messages": ["my [redacted:pattern:1]", {"[redacted:x-api-key:1]": 1}]
    }


@pytest.mark.parametrize("name", ["code", "code_verifier", "device_code", "assertion", "client_assertion"])
def test_codes_and_assertions_of_a_json_token_request_are_redacted(name: str) -> None:
    request = {"grant_type": "authorization_code", "client_id": "my-application", name: RANDOM}
    made = Redactor().value(request)
    assert made == {**request, name: f"[redacted:{name}:1]"}
    assert Redactor().value(made) is made


@pytest.mark.parametrize(
    "value",
    [
        {"code": RANDOM},
        {"grant_type": "authorization_code", "code": "short"},
        {"grant_type": {"type": "string"}, "code": {"type": "string", "description": RANDOM}},
    ],
)
def test_a_code_without_a_token_request_is_kept(value: dict[str, Any]) -> None:
    assert Redactor().value(value) is value


def test_integers_that_no_fast_encoder_takes() -> None:
    assert Redactor().value({"n": 2**70, "password": RANDOM}) == {"n": 2**70, "password": "[redacted:password:1]"}


# -- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"my key is {KEY}.", "my key is [redacted:api-key:1]."),
        (f"\\n{KEY}\\n", "\\n[redacted:api-key:1]\\n"),
        ("Authorization: Bearer abcdefghijklmnop1234", "Authorization: Bearer [redacted:bearer:1]"),
        ("git clone https://me:s3cr3t@github.com/x", "git clone https://me:[redacted:url-password:1]@github.com/x"),
        ("AKIAIOSFODNN7QWERTYU", "[redacted:aws-key-id:1]"),
        ("curl 'https://h/x?alt=sse&key=Zx81kQpLw92mNb'", "curl 'https://h/x?alt=sse&key=[redacted:key:1]'"),
        (
            "grant_type=refresh_token&refresh_token=Zx81kQpLw92mNb&client_id=me",
            "grant_type=refresh_token&refresh_token=[redacted:refresh_token:1]&client_id=me",
        ),
        (
            "client_id=me&client_assertion=Zx81kQpLw92mNb&grant_type=client_credentials",
            "client_id=me&client_assertion=[redacted:client_assertion:1]&grant_type=client_credentials",
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE1\n-----END RSA PRIVATE KEY-----\nrest",
            "[redacted:private-key:1]\nrest",
        ),
        ('{"api_key": "Zx81kQpLw92', '{"api_key": "[redacted:api_key:1]'),
        (
            '{"a": "{\\"api_key\\": \\"Zx81kQp\\\\\\"Lw92mNb4\\"}"}',
            '{"a": "{\\"api_key\\": \\"[redacted:api_key:1]\\"}"}',
        ),
        ('{"password" : "Zx81kQpLw9 b"}', '{"password" : "[redacted:password:1]"}'),
    ],
)
def test_texts(text: str, expected: str) -> None:
    redactor = Redactor()
    assert redactor.text(text) == expected
    assert redactor.text(expected) is expected


@pytest.mark.parametrize(
    "text",
    [
        "task-list-with-a-long-name-0123456789",
        "use sk-learn-contrib-packages-and-more",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "export OPENAI_API_KEY=sk-test-key-1234",
        "Bearer authentication is used by most",
        "a?b=c&d=e",
        "eyJhbGciOiJIUzI1NiJ9 is only a head",
        "see https://example.com:8080/a@b",
        "count_tokens(max_tokens=4096)",
    ],
)
def test_texts_that_hold_no_secret_are_the_very_same_object(text: str) -> None:
    assert Redactor().text(text) is text


@pytest.mark.parametrize(
    "dummy", ["sk-test-key-for-the-agent", "dummy-api-key-000", "xxxxxxxxxxxxxxxxxxxx", "sk-1234567890123456", "EMPTY",
              "your-api-key-here", "sk-no-key-required", "unused-but-needed"]
)  # fmt: skip
def test_dummies_are_replaced_in_their_header_and_nowhere_else(dummy: str) -> None:
    redactor = knowing(dummy)
    assert redactor.headers([("authorization", f"Bearer {dummy}")]) == [
        ("authorization", "Bearer [redacted:authorization:1]")
    ]
    text = f"the key was {dummy}"
    assert redactor.text(text) is text


@pytest.mark.parametrize(
    "secret", ["a1b2c3d4e5f6a7b8", "key-9f8e7d6c5b4a3928", "my-secret-2024x-value", "0f1e2d3c4b5a69788796"]
)
def test_what_only_begins_like_a_dummy_is_a_secret(secret: str) -> None:
    assert knowing(secret).text(f"it was {secret}.") == "it was [redacted:authorization:1]."


PROGRAM = """import requests
headers = {"Authorization": "Bearer " + key, "x-api-key": "YOUR_API_KEY", "password": "password123"}
config = {"api_key": f"{x}", "secret": "${SECRET}", "client_secret": "test-secret"}
url = f"https://h/?key={key}"
database = "postgres://user:password@localhost/db"
# curl -H "Authorization: Bearer $TOKEN" "https://h/?api_key=YOUR_API_KEY"
"""


def test_a_program_that_a_model_writes_comes_back_as_it_was() -> None:
    arguments = json.dumps({"path": "client.py", "content": PROGRAM})
    value = {"content": PROGRAM, "tool_calls": [{"function": {"arguments": arguments}}]}
    assert Redactor().value(value) is value
    raw = orjson.dumps(value)
    assert Redactor().data(raw) is raw
    frames = [frame({"delta": arguments[i : i + 9]}) for i in range(0, len(arguments), 9)]
    assert Redactor().frames(frames) == (frames, ())


def test_a_secret_that_is_written_out_in_a_program_is_replaced() -> None:
    text = 'client = Client({\n  "password": "hunter2hunter2",\n  "api_key": "a8f7e6d5c4"})'
    expected = 'client = Client({\n  "password": "[redacted:password:1]",\n  "api_key": "[redacted:api_key:1]"})'
    assert Redactor().text(text) == expected
    arguments = json.dumps({"content": text})
    assert Redactor().value({"a": arguments}) == {"a": json.dumps({"content": expected})}


def test_short_credentials_are_not_looked_for_elsewhere() -> None:
    redactor = knowing("open sesame")
    assert redactor.text("open sesame!") == "open sesame!"


def test_user_patterns_and_their_groups() -> None:
    redactor = Redactor([r"CUST-\d+", r"project (\w+)"])
    assert redactor.text("CUST-12 of project Falcon, CUST-12") == (
        "[redacted:pattern:1] of project [redacted:pattern:2], [redacted:pattern:1]"
    )


def test_a_bad_pattern_is_named() -> None:
    with pytest.raises(UsageError, match=r"the redaction pattern 'a\(' is not a regular expression: missing \)"):
        Redactor(["a("])


def test_the_same_secret_gets_the_same_placeholder_everywhere() -> None:
    redactor = knowing(KEY)
    placeholder = "[redacted:authorization:1]"
    assert redactor.headers([("x-api-key", KEY)]) == [("x-api-key", placeholder)]
    assert redactor.url(f"https://h/?key={KEY}") == f"https://h/?key={placeholder}"
    assert redactor.value({"api_key": KEY, "text": KEY}) == {"api_key": placeholder, "text": placeholder}
    assert redactor.text(f"Bearer {KEY}") == f"Bearer {placeholder}"
    assert redactor.data(KEY.encode()) == placeholder.encode()


def test_numbers_go_on_after_those_that_a_tape_already_has() -> None:
    redactor = Redactor()
    redactor.resume('"Bearer [redacted:authorization:3]", "[redacted:set-cookie]", "%5Bredacted:url-password:2%5D"')
    assert redactor.headers([("authorization", KEY)]) == [("authorization", "[redacted:authorization:4]")]
    assert redactor.url("https://a:b@h/") == "https://%5Bredacted:url-password:3%5D@h/"


# -- bytes and frames --------------------------------------------------------------------------------------------


def test_bytes_that_were_clean_are_searched_for_what_is_learnt_later() -> None:
    redactor = knowing(TOKEN)
    data = b"some text " * 100 + KEY[7:].encode()
    assert redactor.data(data) is data
    assert redactor.data(data) is data
    redactor.learn([("set-cookie", "s=0123456789abcdefghi")], "")
    assert redactor.data(data) is data
    redactor.learn([("x-api-key", KEY[7:])], "")
    assert redactor.data(data).endswith(b"text [redacted:x-api-key:1]")
    redactor.learn([("set-cookie", "s=9876543210abcdefghi")], "")
    assert redactor.data(data).endswith(b"text [redacted:x-api-key:1]")


def test_raw_bytes_need_not_be_text() -> None:
    redactor = knowing(TOKEN)
    assert redactor.data(b"\xff\xfe" + TOKEN.encode() + b"\xc3") == b"\xff\xfe[redacted:authorization:1]\xc3"
    same = b"\xff\xfe nothing \xc3" * 100
    assert redactor.data(same) is same


def test_raw_json_stays_json() -> None:
    redactor = Redactor([r"\d{4,}", r"\{.*\}"])
    raw = b'{"id":"call_12345","n":12345,"t":"a 12345","o":{"x":1},"c1234":"x"}'
    assert orjson.loads(redactor.data(raw)) == {
        "id": "call_12345",
        "n": 12345,
        "t": "a [redacted:pattern:1]",
        "o": {"x": 1},
        "c1234": "x",
    }


def frame(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def test_a_stream_without_secrets_is_the_very_same_object() -> None:
    frames = [frame({"delta": f"t{i}", "id": "chatcmpl-1"}) for i in range(50)]
    made, rewritten = Redactor().frames(frames)
    assert made is frames
    assert rewritten == ()


def test_a_secret_split_over_frames() -> None:
    frames = [frame({"i": 0, "delta": delta}) for delta in ("my key ", TOKEN[:9], "", TOKEN[9:], " ok")]
    made, rewritten = knowing(TOKEN).frames(frames)
    assert [orjson.loads(f[6:])["delta"] for f in made] == ["my key ", "[redacted:authorization:1]", "", "", " ok"]
    assert rewritten == (1, 3)
    assert made[0] is frames[0]


def test_only_the_string_that_changed_is_spelled_anew() -> None:
    raw = b'data: {"a" : "\\u00e9\\/",  "b":"' + KEY.encode() + b'" , "n": 1.0}\n\n'
    made, _ = Redactor().frames([raw])
    assert made == [b'data: {"a" : "\\u00e9\\/",  "b":"[redacted:api-key:1]" , "n": 1.0}\n\n']


def test_frames_that_are_no_json() -> None:
    frames = [
        f": comment {KEY}\n\n".encode(),
        f"event: x\ndata: plain {KEY[:20]}\n\n".encode(),
        f"data: {KEY[20:]} end\n\n".encode(),
        b"data: [DONE]\n\n",
    ]
    made, rewritten = knowing(KEY).frames(frames)
    assert made == [
        b": comment [redacted:authorization:1]\n\n",
        b"event: x\ndata: plain [redacted:authorization:1]\n\n",
        b"data:  end\n\n",
        b"data: [DONE]\n\n",
    ]
    assert rewritten == (0, 1, 2)


def test_a_frame_in_which_a_name_stands_twice_hides_nothing() -> None:
    made, rewritten = Redactor().frames([b'{"a":"x ' + KEY.encode() + b'","a":"b"}\n'])
    assert made == [b'{"a":"x [redacted:api-key:1]","a":"b"}\n']
    assert rewritten == (0,)


def test_deeply_nested_json_hides_nothing() -> None:
    value: Any = KEY
    for i in range(250):
        value = {"a": value} if i % 2 else [value]
    assert KEY.encode() not in orjson.dumps(Redactor().value(value))
    deep = b'{"a":' * 900 + b'"' + KEY.encode() + b'"' + b"}" * 900 + b"\n"
    made, rewritten = Redactor().frames([deep])
    assert made == [deep.replace(KEY.encode(), b"[redacted:api-key:1]")]
    assert rewritten == (0,)


def test_interleaved_choices_are_not_mixed_up() -> None:
    frames = []
    for piece, other in zip((TOKEN[:10], TOKEN[10:20], TOKEN[20:]), "abc", strict=True):
        frames.append(frame({"choices": [{"index": 0, "delta": {"content": piece}}]}))
        frames.append(frame({"choices": [{"index": 1, "delta": {"content": other}}]}))
    made, rewritten = knowing(TOKEN).frames(frames)
    contents = [orjson.loads(f[6:])["choices"][0]["delta"]["content"] for f in made]
    assert contents == ["[redacted:authorization:1]", "a", "", "b", "", "c"]
    assert rewritten == (0, 2, 4)


@pytest.mark.parametrize(
    ("data", "held"),
    [
        (b"data: x\n\n", b""),
        (b'{"content":"some te', b"te"),
        (b'{"api_key":"a b', b'api_key":"a b'),
        (b'{"api_key"', b'api_key"'),
        (b'{\\"password\\": \\"a b', b'password\\": \\"a b'),
        (b'{"api_key":"ab"', b""),
        (b"x Bearer abc", b"Bearer abc"),
        (b"x -----BEGIN PRIVATE KEY-----\nMII\n", b"-----BEGIN PRIVATE KEY-----\nMII\n"),
        (b"see pass wo", b"pass wo"),
    ],
)
def test_what_may_begin_a_secret_is_held_back(data: bytes, held: bytes) -> None:
    redactor = knowing('pass word "with" 9 oddities')
    assert data[len(data) - redactor.unfinished(data) :] == held


# -- placeholders ------------------------------------------------------------------------------------------------


def test_placeholders_match_anything_on_replay() -> None:
    assert matches("Bearer [redacted:authorization:1]", f"Bearer {KEY}")
    assert matches("a [redacted:x:1] b [redacted] c", "a 1 b 2 c")
    assert matches("same", "same")
    assert not matches("same", "other")
    assert not matches("a [redacted:x:1] b", "a 1 c")
    assert not matches("a [redacted:x:1]b[redacted:x:1] c", "a 1 c")
    assert not matches("[redacted:x:1]aa", "a")
    assert matches("https://%5Bredacted:url-password:1%5D@h/", "https://me:pw@h/")
    assert not matches("redacted", "x")


def test_is_placeholder() -> None:
    assert is_placeholder("[redacted:authorization:12]")
    assert is_placeholder("[redacted]")
    assert is_placeholder("%5Bredacted:key:1%5D")
    assert not is_placeholder("Bearer [redacted:authorization:1]")
    assert not is_placeholder("redacted")


KEY = "sk-proj-AbCdEf0123456789ghij4567XY"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"OPENAI_API_KEY={KEY}", "OPENAI_API_KEY=[redacted:api-key:1]"),
        (f"FOO={KEY} BAR=1", "FOO=[redacted:api-key:1] BAR=1"),
        (f"run --key={KEY}", "run --key=[redacted:api-key:1]"),
        ("GH=ghp_" + "aB3d" * 9, "GH=[redacted:github-token:1]"),
        (f"/v1/x?foo={KEY}", "/v1/x?foo=[redacted:api-key:1]"),
        ("/v1/x?q=AIza" + "aB3dE" * 7 + "&z=1", "/v1/x?q=[redacted:google-api-key:1]&z=1"),
        ("q=AIza" + "aB3dE" * 7 + "/x", "q=[redacted:google-api-key:1]/x"),
        (f"say+{KEY}", "say+[redacted:api-key:1]"),
        (f"/bot/{KEY}", "/bot/[redacted:api-key:1]"),
        (f"_{KEY}", "_[redacted:api-key:1]"),
        (f"x?a=FOO%3D{KEY}", "x?a=FOO%3D[redacted:api-key:1]"),
        (f"\\u003d{KEY}", "\\u003d[redacted:api-key:1]"),
        (f"\x1b[32m{KEY}\x1b[0m", "\x1b[32m[redacted:api-key:1]\x1b[0m"),
        ("x?foo=Bearer%20Qz8v0123456789abcdEF%3D&a=1", "x?foo=Bearer%20[redacted:bearer:1]&a=1"),
        ("a=1&foo=Bearer+Qz8v0123456789abcdEF", "a=1&foo=Bearer+[redacted:bearer:1]"),
    ],
)
def test_a_key_is_found_whatever_punctuation_stands_before_it(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected
    assert Redactor().data(text.encode()) == expected.encode()
    assert Redactor().url(f"https://h.example/{text}") == f"https://h.example/{expected}"
    assert Redactor().value({"messages": [{"content": text}]}) == {"messages": [{"content": expected}]}
    frame = b"data: " + orjson.dumps({"delta": text}) + b"\n\n"
    assert orjson.loads(Redactor().frames([frame])[0][0][6:]) == {"delta": expected}


@pytest.mark.parametrize("text", [f"task-{KEY[3:]}", f"9{KEY}", f"my-{KEY}", f"a_{KEY}", f"desk{KEY[2:]}"])
def test_what_goes_on_with_a_longer_word_is_no_key(text: str) -> None:
    assert Redactor().text(text) is text


def test_a_key_that_was_found_by_its_shape_is_replaced_wherever_else_it_stands() -> None:
    redactor = Redactor()
    assert redactor.data(KEY.encode()) == b"[redacted:api-key:1]"
    assert redactor.url(f"https://h.example/?foo=x{KEY}") == "https://h.example/?foo=x[redacted:api-key:1]"
    assert redactor.value({"id": f"x{KEY}"}) == {"id": "x[redacted:api-key:1]"}
    assert Redactor().value([f"x{KEY}", KEY]) == ["x[redacted:api-key:1]", "[redacted:api-key:1]"]
    assert Redactor().text(f"x{KEY} {KEY}") == "x[redacted:api-key:1] [redacted:api-key:1]"
    frames = [
        b'data: {"%b":"%b"}\n\n' % (name, text) for name, text in ((b"a", b"x" + KEY.encode()), (b"b", KEY.encode()))
    ]
    made, rewritten = Redactor().frames(frames)
    assert made == [b'data: {"a":"x[redacted:api-key:1]"}\n\n', b'data: {"b":"[redacted:api-key:1]"}\n\n']
    assert rewritten == (0, 1)


def test_keys_in_texts_do_not_make_a_credential_be_forgotten() -> None:
    redactor = Redactor()
    redactor.learn([("authorization", "Bearer Zq81mfLate77CredentialX29")], "")
    redactor.text(" ".join(f"sk-proj-AbCdEf0123456789ghij{i:04}XY" for i in range(200)))
    assert redactor.text("see Zq81mfLate77CredentialX29") == "see [redacted:authorization:1]"


FORM = (
    b'--b0\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n'
    b'--b0\r\nContent-Disposition: form-data; name="api_key"\r\nContent-Type: text/plain\r\n\r\nhunter22 and more\r\n'
    b'--b0\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n\xff\xfe\r\n--b0--\r\n'
)


def test_credential_fields_of_a_multipart_form() -> None:
    expected = FORM.replace(b"hunter22 and more", b"[redacted:api_key:1]")
    assert Redactor().data(FORM) == expected
    text = FORM.replace(b"\xff\xfe", b"x").decode()
    assert Redactor().text(text) == expected.replace(b"\xff\xfe", b"x").decode()
    escaped = orjson.dumps({"form": text})
    assert b"hunter22" not in Redactor().data(escaped)
    assert Redactor().value({"form": text}) == {"form": expected.replace(b"\xff\xfe", b"x").decode()}


def test_a_field_of_a_form_is_held_back_until_its_value_is_over() -> None:
    at = FORM.index(b"api_key")
    for cut in range(at - 2, FORM.index(b"\r\n--b0", at)):
        assert Redactor().unfinished(FORM[:cut]) >= cut - FORM.index(b"form-data", FORM.index(b"whisper")), cut
    assert Redactor().unfinished(FORM[: FORM.index(b"whisper-1\r\n") + 11]) == 0


def test_a_known_secret_in_utf_16_is_replaced_and_the_rest_stays_utf_16() -> None:
    redactor = Redactor()
    redactor.learn([("authorization", "Bearer Zq81mfLate77CredentialX29")], "")
    text = "the key: Zq81mfLate77CredentialX29, said é"
    for coding in ("utf-16", "utf-16-le", "utf-16-be"):
        made = redactor.data(text.encode(coding))
        assert made.decode(coding) == "the key: [redacted:authorization:1], said é"
        assert redactor.data(made) is made


def test_a_known_secret_with_every_byte_percent_encoded_is_replaced() -> None:
    secret = "Zq81mfLate77CredentialX29"
    redactor = Redactor()
    redactor.learn([("authorization", f"Bearer {secret}")], "")
    for digits in ("02X", "02x"):
        encoded = "".join(f"%{byte:{digits}}" for byte in secret.encode())
        assert redactor.text(f"a={encoded}&b") == "a=[redacted:authorization:1]&b"
    partly = "".join(f"%{ord(c):02x}" if c in "aeZ1" else c for c in secret)
    assert redactor.url(f"https://h.example/a%20b?q={partly}&z=a%20b") == (
        "https://h.example/a%20b?q=[redacted:authorization:1]&z=a%20b"
    )
    assert Redactor().url(f"https://h.example/?foo=%73k{KEY[2:]}") == "https://h.example/?foo=[redacted:api-key:1]"


def test_much_data_is_searched_in_parts_and_nothing_is_lost_between_them() -> None:
    secret = "Zq81mfLate77CredentialX29"
    redactor = Redactor()
    redactor.learn([("authorization", f"Bearer {secret}")], "")
    plain = b"\xff\x00\x80 " * 800_000
    assert redactor.data(plain) is plain
    for at in (0, (1 << 20) - 12, (1 << 20) - 1, 2 << 20, len(plain)):
        made = redactor.data(plain[:at] + secret.encode() + b" " + KEY.encode() + plain[at:])
        assert made == plain[:at] + b"[redacted:authorization:1] [redacted:api-key:1]" + plain[at:]
        assert redactor.data(made) is made
    late = Redactor()
    assert late.data(b"x" + KEY.encode() + b" " + plain + KEY.encode()) == (
        b"x[redacted:api-key:1] " + plain + b"[redacted:api-key:1]"
    )


@pytest.mark.parametrize("levels", [0, 1, 2, 3])
def test_a_form_that_is_cut_off_ends_with_the_string_around_it(levels: int) -> None:
    value: object = 'form-data; name="token"\r\n\r\na8F3k2"L9x7Q4m1Zb\r\n'
    for _ in range(levels):
        value = json.dumps({"a": value})
    text = json.dumps({"body": value, "more": "kept"})
    made = Redactor().data(text.encode()).decode()
    inner = json.loads(made)
    assert inner["more"] == "kept"
    assert "a8F3k2" not in made
    assert "L9x7Q4m1Zb" not in made
    for _ in range(levels):
        inner = json.loads(inner["body"] if "body" in inner else inner["a"])
