"""vcrpy's cassettes in all their spellings."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest
from tests.support.importing import aws_message, outcomes, reasons, taken

from wiretape.adapters.importers.importing import ImportedExchange, RefusedEntry, import_data, import_files
from wiretape.model.http import BytesBody, Close, Ended, JsonBody, StreamBody, TextBody, body_bytes

REQUEST = """\
- request:
    body: '{"model": "m"}'
    headers:
      Accept: [application/json]
      Content-Type: application/json
      x-api-key: [one, two]
    method: post
    uri: https://api.example.com/v1/messages
"""
CASSETTE = f"interactions:\n{REQUEST}  response:\n    %s\nversion: 1\n"


def with_response(response: str) -> str:
    return CASSETTE % response.replace("\n", "\n    ")


def test_text_bodies_keep_their_spelling() -> None:
    text = with_response(
        """body: {string: '{"id":"é"}'}
headers: {Content-Type: [application/json]}
status: {code: 201, message: Created}"""
    )
    (exchange,) = taken(text)
    assert exchange.request.method == "POST"
    assert exchange.request.url == "https://api.example.com/v1/messages"
    assert exchange.request.headers.all("x-api-key") == ("one", "two")
    assert exchange.request.body == JsonBody({"model": "m"}, "spaced")
    assert exchange.response is not None
    assert exchange.response.status == 201
    assert exchange.response.body == JsonBody({"id": "é"})
    assert exchange.ended is Ended.COMPLETE


def test_binary_bodies_are_unpacked_though_the_header_stays() -> None:
    packed = base64.b64encode(gzip.compress(b'{"a":1}')).decode()
    (exchange,) = taken(
        with_response(
            f"body: {{string: !!binary '{packed}'}}\nheaders: {{content-encoding: gzip}}\nstatus: {{code: 200}}"
        )
    )
    assert exchange.response is not None
    assert exchange.response.body == JsonBody({"a": 1})
    assert exchange.response.headers["content-encoding"] == "gzip"


def test_an_encoding_that_is_undone_already_is_left_alone() -> None:
    (exchange,) = taken(with_response("body: {string: '{}'}\nheaders: {content-encoding: [gzip]}\nstatus: {code: 200}"))
    assert exchange.response is not None
    assert exchange.response.body == JsonBody({})


def test_a_packed_body_whose_header_was_filtered_out_is_unpacked() -> None:
    packed = base64.b64encode(gzip.compress(b"data: 1\n\n")).decode()
    (exchange,) = taken(
        with_response(
            f"body: {{string: !!binary '{packed}'}}\nheaders: {{content-type: text/event-stream}}\nstatus: 200"
        )
    )
    assert exchange.response is not None
    assert exchange.response.body == StreamBody((b"data: 1\n\n",), (0,))


def test_a_packed_body_that_breaks_off_keeps_what_there_is() -> None:
    whole = gzip.compress(b"data: 1\n\ndata: 2\n\n" * 200, mtime=0)
    packed = base64.b64encode(whole[: len(whole) - 12]).decode()
    (exchange,) = taken(
        with_response(
            f"body: {{string: !!binary '{packed}'}}\nheaders: {{content-encoding: gzip}}\nstatus: {{code: 200}}"
        )
    )
    assert exchange.ended is Ended.UPSTREAM_CLOSED
    assert exchange.response is not None
    assert body_bytes(exchange.response.body).startswith(b"data: 1\n\n")


def test_a_packed_body_that_is_rubbish_is_named() -> None:
    packed = base64.b64encode(b"\x1f\x8b" + b"rubbish" * 9).decode()
    said = reasons(
        with_response(
            f"body: {{string: !!binary '{packed}'}}\nheaders: {{content-encoding: gzip}}\nstatus: {{code: 200}}"
        )
    )
    assert said[0].startswith("dir/file entry 1: its body, encoded with gzip, is corrupt: ")


def test_streams_come_as_frames_at_no_made_up_times() -> None:
    (exchange,) = taken(
        with_response(
            """body: {string: "event: a\\ndata: 1\\n\\ndata: 2\\n\\n"}
headers: {Content-Type: [text/event-stream]}
status: {code: 200}"""
        )
    )
    assert exchange.response is not None
    assert exchange.response.body == StreamBody((b"event: a\ndata: 1\n\n", b"data: 2\n\n"), (0, 0))


def test_parsed_bodies_come_back_value_for_value() -> None:
    text = """\
interactions:
- request:
    headers: {content-type: [application/json]}
    method: POST
    parsed_body: {model: m, when: 2024-01-01, big: 1.5}
    uri: https://api.example.com/v1/messages
  response:
    headers: {}
    parsed_body: [{a: null}]
    status: {code: 200, message: OK}
version: 1
"""
    (exchange,) = taken(text)
    assert exchange.request.body == JsonBody({"model": "m", "when": "2024-01-01", "big": 1.5}, exact=False)
    assert exchange.response is not None
    assert exchange.response.body == JsonBody([{"a": None}], exact=False)


def test_a_body_that_is_a_mapping_of_its_own_is_its_value() -> None:
    text = """\
interactions:
- request: {method: POST, uri: "https://x.example.com/", headers: {}, body: {messages: [], model: m}}
  response: {status: {code: 200, message: OK}, headers: {}, body: {base64_string: eyJhIjoxfQ==}}
"""
    (exchange,) = taken(text)
    assert exchange.request.body == JsonBody({"messages": [], "model": "m"}, exact=False)
    assert exchange.response is not None
    assert exchange.response.body == JsonBody({"a": 1})


def test_json_cassettes() -> None:
    entry = {
        "request": {"method": "GET", "uri": "https://x.example.com/", "body": None, "headers": {"A": ["1"]}},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": "hi"}},
    }
    (exchange,) = taken(json.dumps({"version": 1, "interactions": [entry]}))
    assert exchange.request.body is None
    assert exchange.response is not None
    assert exchange.response.body == TextBody("hi")


def test_tags_of_python_are_data_and_never_run(tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    text = f"""\
interactions:
- request:
    body: !!python/object/new:_io.BytesIO
      state: !!python/tuple [!!python/unicode 'text', 0, null]
    headers: {{x: !!python/object/apply:os.system ['touch {proof}']}}
    method: POST
    uri: https://x.example.com/
  response: {{status: {{code: 200, message: OK}}, headers: {{}}, body: {{string: ''}}}}
"""
    (exchange,) = taken(text)
    assert exchange.request.body == TextBody("text")
    assert exchange.request.headers["x"] == f"touch {proof}"
    assert not proof.exists()


def test_an_event_stream_with_all_its_checksums_is_taken() -> None:
    frames = (aws_message(b'{"a":1}'), aws_message(b'{"b":"\xff"}'))
    packed = base64.b64encode(b"".join(frames)).decode()
    kind = "application/vnd.amazon.eventstream"
    (exchange,) = taken(
        with_response(
            f"body: {{string: !!binary '{packed}'}}\nheaders: {{Content-Type: [{kind}]}}\nstatus: {{code: 200}}"
        )
    )
    assert exchange.response is not None
    assert exchange.response.body == StreamBody(frames, (0, 0), binary=True)


def test_an_event_stream_that_breaks_off_is_taken_as_far_as_it_goes() -> None:
    whole = aws_message(b'{"a":1}')
    packed = base64.b64encode(whole + whole[:20]).decode()
    kind = "application/vnd.amazon.eventstream"
    (exchange,) = taken(
        with_response(
            f"body: {{string: !!binary '{packed}'}}\nheaders: {{Content-Type: [{kind}]}}\nstatus: {{code: 200}}"
        )
    )
    assert exchange.response is not None
    assert exchange.response.body == StreamBody((whole, whole[:20]), (0, 0), binary=True)
    assert exchange.ended is Ended.UPSTREAM_CLOSED


def test_an_event_stream_with_a_wrong_checksum_is_named_and_the_rest_taken() -> None:
    frame = bytearray(aws_message(b'{"a":1}'))
    frame[-6] ^= 1
    packed = base64.b64encode(aws_message(b"1") + bytes(frame)).decode()
    kind = "application/vnd.amazon.eventstream"
    bad = with_response(
        f"body: {{string: !!binary '{packed}'}}\nheaders: {{Content-Type: [{kind}]}}\nstatus: {{code: 200}}"
    )
    good = REQUEST + "  response: {status: {code: 200}, headers: {}, body: {string: ok}}\n"
    found = outcomes(bad.replace("version: 1\n", good))
    assert str(found[0]) == "dir/file entry 1: its AWS event stream is corrupt: CRC mismatch in message 2"
    assert isinstance(found[1], ImportedExchange)
    assert found[1].entry == 2


@pytest.mark.parametrize("lost", [True, False])
def test_an_event_stream_stored_as_text(lost: bool) -> None:
    """A byte a character comes back; where bytes were replaced, nothing does."""
    raw = aws_message(b'{"a":"\xe9"}')
    text = raw.decode("utf-8", "replace") if lost else raw.decode("latin-1")
    response = {"status": {"code": 200}, "body": {"string": text}}
    response["headers"] = {"Content-Type": ["application/vnd.amazon.eventstream"]}
    request = {"method": "POST", "uri": "https://x.example.com/", "headers": {}, "body": "{}"}
    (found,) = outcomes(json.dumps({"interactions": [{"request": request, "response": response}]}))
    if lost:
        assert isinstance(found, RefusedEntry)
        assert found.reason == (
            "its AWS event stream was stored as text, and is corrupt: bytes that are not text are lost"
        )
    else:
        assert isinstance(found, ImportedExchange)
        assert found.exchange.response is not None
        assert found.exchange.response.body == StreamBody((raw,), (0,), binary=True)


def test_lists_of_messages_are_websockets_a_new_one_after_each_close() -> None:
    text = """\
version: 1
interactions:
- {kind: message, direction: received, data: {type: session.created}}
- {kind: message, direction: sent, data: hello}
- {kind: close, code: 1011, reason: test, ok: false}
- {kind: message, direction: sent, data: !!binary AAE=}
"""
    first, second = taken(text, name="a/live.yaml")
    assert first.request.url == "unknown:live.yaml"
    assert first.response is not None
    assert first.response.status == 101
    assert [(m.sender, m.body) for m in first.messages] == [
        ("server", JsonBody({"type": "session.created"}, exact=False)),
        ("client", TextBody("hello")),
    ]
    assert first.close == Close(1011, "test", None)
    assert first.ended is Ended.COMPLETE
    assert [m.body for m in second.messages] == [BytesBody(b"\x00\x01")]
    assert second.ended is Ended.RECORDER_STOPPED  # the file does not say how it went on


def test_what_is_no_http_exchange_is_named() -> None:
    text = "interactions:\n- request_sample: {raw: 1}\n  response_sample: {}\n- nothing\n"
    assert reasons(text) == [
        "dir/file entry 1: is not an HTTP exchange (it holds request_sample, response_sample)",
        "dir/file entry 2: is not an HTTP exchange (it holds str)",
    ]


def test_an_entry_that_lacks_something_costs_only_itself() -> None:
    good = REQUEST + "  response: {status: {code: 200}, headers: {}, body: {string: ok}}\n"
    found = outcomes("interactions:\n- {request: {uri: 'https://x.example.com/'}, response: {}}\n" + good)
    assert str(found[0]) == "dir/file entry 1: is not a valid entry of vcrpy: it has no 'method'"
    assert isinstance(found[1], ImportedExchange)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("interactions: []\n", "dir/file: holds no exchange"),
        ("interactions: [\n", "dir/file: is not YAML: "),
        ("interactions: []\n---\ninteractions: []\n", "dir/file: has several YAML documents"),
        ("interactions: !!binary '*'\n", "dir/file: is not YAML: line 1: a !!binary that is not base64"),
        ("", "dir/file: is empty"),
        ('{"wiretape": 1}', "dir/file: is a tape already"),
        ("# notes\n", "dir/file: is not a recording in a known format"),
    ],
)
def test_files_that_are_none(text: str, said: str) -> None:
    (found,) = reasons(text)
    assert found.startswith(said)


def test_aliases_that_unfold_without_end_are_refused() -> None:
    levels = ["interactions:\n- request: &a0 [x, x, x, x, x, x, x, x]\n"]
    levels += [f"- request: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 12)]
    (found,) = reasons("".join(levels))
    assert "its YAML aliases unfold to more than the limit of 67,108,864 bytes" in found
    assert "WIRETAPE_MAX_SIZE=4g" in found
    assert reasons("interactions:\n- &a [*a]\n")[0].startswith("dir/file")


def test_cassettes_from_before_version_1() -> None:
    text = """\
- request: {method: GET, protocol: https, host: x.example.com, port: 443, path: /a?b=1, headers: {}, body: null}
  response: {status: {code: 200, message: OK}, headers: {}, body: {string: hi}}
"""
    (exchange,) = taken(text)
    assert exchange.request.url == "https://x.example.com/a?b=1"


@pytest.mark.parametrize(
    "key",
    [
        "? !!python/object/apply:multidict._multidict.istr\n      - Content-Type\n      : - text/plain",
        "? !!python/object/new:multidict._multidict.istr {args: [Content-Type], state: {}}\n      : text/plain",
    ],
)
def test_names_of_headers_that_are_objects_of_aiohttp(key: str) -> None:
    cassette = with_response("body: {string: hi}\nheaders: {}\nstatus: {code: 200}").replace(
        "Accept: [application/json]", key
    )
    (exchange,) = taken(cassette.replace("      Content-Type: application/json\n", ""))
    assert exchange.request.headers["content-type"] == "text/plain"


def test_the_answers_of_older_versions_for_httpx() -> None:
    (exchange,) = taken(with_response("content: hi\nheaders: {}\nhttp_version: HTTP/1.1\nstatus_code: 201"))
    assert exchange.response is not None
    assert (exchange.response.status, exchange.response.body) == (201, TextBody("hi"))


def test_requests_and_responses_apart_in_gzip(tmp_path: Path) -> None:
    request = {"method": "POST", "uri": "https://api.example.com/v1/messages", "headers": {}, "body": "q"}
    response = {"status": {"code": 200}, "headers": {}, "body": {"string": "hi"}}
    document = {"requests": [request, request], "responses": [response]}
    data = gzip.compress(json.dumps(document).encode())
    found = outcomes(data)
    assert [type(one) for one in found] == [ImportedExchange, RefusedEntry]
    path = tmp_path / "a.yaml.gz"
    path.write_bytes(data)
    assert [type(one) for one in import_files([path])] == [ImportedExchange, RefusedEntry]
    [refused] = import_data("a.gz", data[:40])
    assert isinstance(refused, RefusedEntry)
    assert refused.reason == "is gzip that breaks off"
