"""Law 5: redaction is idempotent, and no planted secret reaches the disk, journal included."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import string
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from wiretape.model.http import Ended, Exchange, JsonBody, StreamBody, TextBody
from wiretape.tape.editing.edit import redact_tape
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor, worth_learning

PLAIN = string.ascii_letters + string.digits
TOKENS = st.text(PLAIN + "-_.", min_size=20, max_size=48).map(lambda t: f"k9{t}7z").filter(worth_learning)
# Credentials with everything that JSON, URLs and regular expressions have a meaning for.
ODD = (
    st.text(PLAIN + '"\\/%+=&?#;:,.*()[]{}$^|~é密', min_size=20, max_size=40)
    .map(lambda t: f"q8{t}7w")
    .filter(worth_learning)
)
SHAPED = st.one_of(
    st.text(PLAIN, min_size=32, max_size=48).map(lambda t: f"sk-ant-api03-{t}A1"),
    st.text(PLAIN + "_-", min_size=32, max_size=32).map(lambda t: f"AIza{t}x1z"),
    st.text(PLAIN, min_size=36, max_size=36).map(lambda t: f"ghp_{t}1A"),
    st.text(PLAIN, min_size=20, max_size=30).map(lambda t: f"eyJhbGciOiJ9.eyJzdWIi{t}.{t}s1"),
).filter(worth_learning)
# What texts around a secret are made of: nothing that makes the secret a part of a longer word.
WORDS = st.lists(
    st.sampled_from(["a", "the", "key", "{", "}", '"', "\\", "\n", "日本", ":", "=", "?", "&"]), max_size=6
)
PROSE = WORDS.map(lambda words: "".join(f"{word} " for word in words))


def spellings(secret: str) -> Iterator[str]:
    """The spellings of a secret in a file."""
    yield secret
    yield quote(secret, safe="")
    for ascii_only in (False, True):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    yield "".join(f"%{byte:02X}" for byte in secret.encode())
    yield "\0".join(secret)


def assert_absent(secret: str, *written: bytes) -> None:
    for spelling in spellings(secret):
        for data in written:
            assert spelling.encode() not in data, (spelling, data)


def knowing(secret: str, header: str = "x-api-key") -> Redactor:
    redactor = Redactor()
    redactor.learn([(header, secret)], "")
    return redactor


def json_with(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """JSON values that hold the leaf at least once, at any depth, as a value or as a member's name."""
    names = st.sampled_from(["messages", "content", "text", "input", "a", "token_count", "metadata"])
    other = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), PROSE)
    wrap = st.one_of
    return st.recursive(
        leaf,
        lambda inner: wrap(
            st.tuples(st.lists(other, max_size=2), inner, st.lists(other, max_size=2)).map(
                lambda t: [*t[0], t[1], *t[2]]
            ),
            st.tuples(st.dictionaries(names, other, max_size=2), names, inner).map(lambda t: {**t[0], t[1]: t[2]}),
        ),
        max_leaves=4,
    )


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[a:b] for a, b in itertools.pairwise([0, *at, len(data)]) if a < b]


CUTS = st.lists(st.integers(0, 10_000), max_size=8)


# -- each place separately ----------------------------------------------------------------------------------------


HEADERS = """
    Authorization X-Api-Key api-key x-goog-api-key Ocp-Apim-Subscription-Key cookie set-cookie x-amz-security-token
    chatgpt-account-id openai-organization openai-project mcp-session-id proxy-authorization x-my-token
    some-unknown-header sec-websocket-protocol
"""


@given(
    secret=TOKENS | ODD | SHAPED,
    name=st.sampled_from(HEADERS.split()),
    scheme=st.sampled_from(["", "Bearer ", "Basic ", "session="]),
)
def test_no_header_value_is_kept_that_is_not_allowed(secret: str, name: str, scheme: str) -> None:
    redactor = Redactor()
    pairs = [(name, scheme + secret), ("user-agent", f"agent/1 {secret}"), ("x-stainless-lang", "python")]
    redactor.learn(pairs, "")
    made = redactor.headers(pairs)
    assert_absent(secret, made[0][1].encode())
    assert [pair[0] for pair in made] == [name, "user-agent", "x-stainless-lang"]
    assert made[2] == ("x-stainless-lang", "python")
    assert redactor.headers(made) == made


@given(secret=TOKENS | ODD | SHAPED, name=st.sampled_from(["key", "api_key", "access_token", "sig", "X-Amz-Signature"]))
def test_no_secret_stays_in_a_url(secret: str, name: str) -> None:
    redactor = Redactor()
    url = f"https://u:{quote(secret, safe='')}@h.example/v1/x?alt=sse&{name}={quote(secret, safe='')}&z=1"
    redactor.learn([], url)
    made = redactor.url(url)
    assert_absent(secret, made.encode())
    assert made.startswith("https://%5Bredacted:")
    assert made.endswith("&z=1")
    assert "@h.example/v1/x?alt=sse&" in made
    assert redactor.url(made) == made
    path = redactor.url(f"https://h.example/bot/{quote(secret, safe='')}/send")
    assert_absent(secret, path.encode())


@given(data=st.data(), secret=TOKENS | ODD, levels=st.integers(0, 2))
def test_no_known_secret_stays_in_json_at_any_depth_or_in_json_in_strings(
    data: st.DataObject, secret: str, levels: int
) -> None:
    leaf: Any = f"{data.draw(PROSE)}{secret} {data.draw(PROSE)}"
    for _ in range(levels):
        leaf = json.dumps({"x": leaf}, ensure_ascii=data.draw(st.booleans()))
    value = data.draw(json_with(st.just(leaf) | st.just({leaf: 1})))
    redactor = knowing(secret)
    made = redactor.value(value)
    assert_absent(secret, orjson.dumps(made), json.dumps(made).encode())
    assert redactor.value(made) is made


@given(data=st.data(), secret=SHAPED)
def test_no_key_shape_stays_in_json(data: st.DataObject, secret: str) -> None:
    value = data.draw(json_with(PROSE.map(lambda prose: f"{prose}{secret} then")))
    redactor = Redactor()
    made = redactor.value(value)
    assert_absent(secret, orjson.dumps(made))
    assert redactor.value(made) is made
    assert Redactor().value(made) is made


# What parts a key from a word before it: all but the characters that words are made of.
PARTING = st.sampled_from(sorted(set(string.punctuation) - set("_-")))
BEFORE = st.one_of(
    st.tuples(st.text(PLAIN + "_-", max_size=8), PARTING, st.sampled_from(["", "_", "--"])).map("".join),
    st.sampled_from(["", "_", "-", "--", "FOO%3D", "FOO%3d", "a%20", "\\n", "\\u003d", "\x1b[1;32m"]),
    st.tuples(st.text(max_size=6), st.sampled_from("\t\n 密é=/+")).map("".join),
)


@given(secret=SHAPED, before=BEFORE, after=st.sampled_from(["", " ", "&z=1", "/x", "=", "+y", ";", '"', ")"]))
@example(secret="sk-ant-api03-AbCdEf0123456789ghij4567XY", before="OPENAI_API_KEY=", after="")
def test_no_key_shape_stays_after_any_prefix(secret: str, before: str, after: str) -> None:
    text = before + secret + after
    for made in (Redactor().text(text), Redactor().url(f"https://h.example/?foo={text}")):
        assert_absent(secret, made.encode("utf-8", "surrogateescape"))
    assert_absent(secret, Redactor().data(text.encode()), orjson.dumps(Redactor().value([{"content": text}])))
    frame = b"data: " + orjson.dumps({"delta": text}) + b"\n\n"
    assert_absent(secret, *Redactor().frames([frame])[0])
    redactor = Redactor()
    redactor.text(text)
    later = redactor.url(f"https://h.example/word{secret}")
    assert_absent(secret, later.encode())
    assert redactor.url(later) == later


@given(
    data=st.data(),
    secret=st.text(PLAIN + "\"\\ é", max_size=30).map(lambda t: f"{t}8Kq2Zx9v{t}!"),
    name=st.sampled_from(["authorization_token", "api_key", "apiKey", "API-Key", "access_token", "refresh_token",
                          "client_secret", "password", "authorization", "private_key", "Authorization"]),
    levels=st.integers(0, 2),
)  # fmt: skip
def test_no_value_of_a_credential_named_member_stays(data: st.DataObject, secret: str, name: str, levels: int) -> None:
    leaf: Any = {"type": "mcp", name: secret, "n": 1}
    for _ in range(levels):
        leaf = {"content": json.dumps(leaf, ensure_ascii=data.draw(st.booleans()))}
    value = data.draw(json_with(st.just(leaf)))
    redactor = Redactor()
    made = redactor.value(value)
    assert_absent(secret, orjson.dumps(made))
    assert redactor.value(made) is made
    raw = redactor.data(orjson.dumps(leaf))
    assert_absent(secret, raw)
    if levels == 0:
        assert set(json.loads(raw)) == {"type", name, "n"}


@given(secret=TOKENS | SHAPED, before=PROSE, after=PROSE, cuts=CUTS, other=PROSE)
def test_no_secret_stays_in_a_stream_for_any_split(
    secret: str, before: str, after: str, cuts: list[int], other: str
) -> None:
    text = f"{before}{secret} {after}"
    at = sorted({cut % (len(text) + 1) for cut in cuts})
    deltas = [text[a:b] for a, b in itertools.pairwise([0, *at, len(text)])]
    frames = []
    for delta in deltas:
        frames.append(b"data: " + orjson.dumps({"choices": [{"index": 0, "delta": {"content": delta}}]}) + b"\n\n")
        frames.append(b"data: " + orjson.dumps({"choices": [{"index": 1, "delta": {"content": other}}]}) + b"\n\n")
    redactor = knowing(secret)
    made, rewritten = redactor.frames(frames)
    assert len(made) == len(frames)
    chunks = [orjson.loads(frame[6:])["choices"][0] for frame in made]
    joined = ["".join(c["delta"]["content"] for c in chunks if c["index"] == i) for i in (0, 1)]
    assert_absent(secret, joined[0].encode(), b"".join(made))
    assert joined[1] == other * len(deltas)
    placeholder = redactor.text(secret)
    assert joined[0] == text.replace(secret, placeholder)
    assert rewritten == tuple(i for i, (a, b) in enumerate(zip(made, frames, strict=True)) if a != b)
    again, none = redactor.frames(made)
    assert again is made
    assert none == ()


@given(secret=st.text(PLAIN, max_size=30).map(lambda t: f"8Kq2Zx9v{t}"), cuts=CUTS, known=st.booleans())
def test_a_credential_in_streamed_tool_arguments_stays_unless_it_is_known(
    secret: str, cuts: list[int], known: bool
) -> None:
    arguments = json.dumps({"user": "me", "password": secret, "n": 1})
    frames = [
        b"event: content_block_delta\ndata: "
        + orjson.dumps({"type": "content_block_delta", "index": 1, "delta": {"partial_json": piece.decode()}})
        + b"\n\n"
        for piece in pieces(arguments.encode(), cuts)
    ]
    redactors = [Redactor(), Redactor(tool_arguments=True)]
    if known and worth_learning(secret):
        redactors[0].learn([("x-api-key", secret)], "")
    for redactor in redactors:
        made, _ = redactor.frames(frames)
        joined = "".join(orjson.loads(frame.split(b"data: ")[1])["delta"]["partial_json"] for frame in made)
        kept = redactor is redactors[0] and not (known and worth_learning(secret))
        name = "password" if redactor is redactors[1] else "x-api-key"
        assert json.loads(joined) == {"user": "me", "password": secret if kept else f"[redacted:{name}:1]", "n": 1}
        assert redactor.written == (["password"] if kept else [])


@given(secret=TOKENS | ODD | SHAPED, before=PROSE, after=PROSE)
def test_no_secret_stays_in_error_texts_and_raw_bytes(secret: str, before: str, after: str) -> None:
    redactor = knowing(secret)
    text = f'{before}{{"error": "Incorrect API key provided: {secret}"}} {quote(secret, safe="")} {after}'
    for made in (redactor.text(text).encode(), redactor.data(text.encode() + b"\xff\xfe")):
        assert_absent(secret, made)
        assert redactor.data(made) is made
    encoded = base64.b64encode(f"user:{secret}!".encode()).decode()
    assert base64.b64encode(secret.encode())[:20].decode() not in redactor.text(encoded)
    assert "[redacted:" in redactor.text(encoded)


IDS = ("id", "tool_call_id", "tool_use_id", "call_id", "previous_response_id", "item_id", "response_id", "toolUseId",
       "encrypted_content", "signature", "thoughtSignature", "thought_signature")  # fmt: skip
ID_VALUES = st.text(PLAIN + "_-", min_size=4, max_size=60).map(lambda t: f"call_{t}")


IDS_OF_ITEM = st.dictionaries(st.sampled_from(IDS), ID_VALUES, min_size=1)


@given(secret=TOKENS, ids=IDS_OF_ITEM, pattern=st.booleans())
def test_linking_ids_and_provider_state_stay(secret: str, ids: dict[str, str], pattern: bool) -> None:
    assume(not any(secret in value for value in ids.values()))
    redactor = Redactor([r"[a-z]{2,}_\w+"] if pattern else [])  # a user's pattern that ids match, too
    redactor.learn([("authorization", f"Bearer {secret}")], "")
    value = {"messages": [{**ids, "content": f"see {secret}"}], "max_tokens": 1000, "usage": {"total_tokens": 3}}
    made = redactor.value(value)
    assert {name: made["messages"][0][name] for name in ids} == ids
    assert made["messages"][0]["content"] == "see [redacted:authorization:1]"
    assert made["max_tokens"] == 1000
    assert made["usage"] is value["usage"]
    raw = orjson.loads(redactor.data(orjson.dumps(value)))
    assert {name: raw["messages"][0][name] for name in ids} == ids
    frames, _ = redactor.frames([b"data: " + orjson.dumps(value["messages"][0]) + b"\n\n"])
    streamed = orjson.loads(frames[0][6:])
    assert {name: streamed[name] for name in ids} == ids


@given(
    text=st.text(max_size=200), patterns=st.lists(st.sampled_from([r"\w+", r"\d", "a", r".+", r"x(\w*)y"]), max_size=2)
)
@example(text="a[redacted:pattern:1]b", patterns=[r"\w+"])
def test_redaction_is_idempotent_whatever_the_patterns(text: str, patterns: list[str]) -> None:
    redactor = Redactor(patterns)
    once = redactor.text(text)
    assert redactor.text(once) is once
    assert Redactor(patterns).text(once) is once


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
)


@given(value=ANY_JSON)
def test_redacting_json_is_idempotent_and_keeps_its_form(value: Any) -> None:
    redactor = Redactor([r"\d+x"])
    once = redactor.value(value)
    assert redactor.value(once) is once
    assert type(once) is type(value)


# -- all of it, through the recorder -----------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


def new_recorder(
    path: Path, redactor: Redactor, told: list[str] | None = None, on_exchange: Callable[[Exchange], None] | None = None
) -> Recorder:
    return Recorder(
        path,
        clock=Clock(),
        started=datetime(2026, 1, 2, tzinfo=UTC),
        redactor=redactor,
        on_exchange=on_exchange,
        on_trouble=None if told is None else told.append,
    )


def record_everything(recorder: Recorder, secret: str, cuts: list[int], coding: str | None, journal: Path) -> bytes:
    """Record a run with the secret in every place; return everything that was ever in the journal."""
    seen = [journal.read_bytes()]

    def send(feed: Any, x: int, data: bytes) -> None:
        for piece in pieces(data, cuts):
            feed(x, piece)
            seen.append(journal.read_bytes())

    def coded(data: bytes) -> bytes:
        return gzip.compress(data) if coding else data

    heads = [("content-encoding", coding)] if coding else []
    body = {"messages": [{"role": "user", "content": f"my key: {secret} ok"}], "args": json.dumps({"k": secret})}
    x = recorder.begin("POST", f"https://h.example/v1?key={quote(secret, safe='')}", "1.1",
                       [("x-api-key", secret), ("content-type", "application/json"), *heads])  # fmt: skip
    send(recorder.request_data, x, coded(orjson.dumps(body)))
    recorder.request_end(x)
    recorder.response(x, 200, [("content-type", "text/event-stream"), ("set-cookie", f"s={secret}; path=/"), *heads])
    deltas = ["I saw ", secret[:5], secret[5:12], secret[12:], " there"]
    frames = [b"data: " + orjson.dumps({"index": 0, "delta": {"text": delta}}) + b"\n\n" for delta in deltas]
    whole = b"data: " + orjson.dumps({"note": f"whole {secret}."}) + b"\n\n"
    send(recorder.response_data, x, coded(b"".join(frames) + whole))
    recorder.end(x, Ended.COMPLETE, [("x-trailer", secret)])

    x = recorder.begin("POST", "https://h.example/v1", "1.1", [("x-api-key", secret)])
    send(recorder.request_data, x, orjson.dumps({**body, "more": [secret]}))
    recorder.request_end(x)
    recorder.response(x, 401, [("content-type", "text/plain"), ("location", f"/login?next={quote(secret, safe='')}")])
    send(recorder.response_data, x, f"Incorrect API key provided: {secret}. (see /docs)".encode())
    recorder.end(x, Ended.COMPLETE)

    x = recorder.begin("GET", "wss://h.example/v1/ws", "1.1", [("upgrade", "websocket"), ("cookie", f"a={secret}")])
    recorder.request_end(x)
    recorder.response(x, 101, [("upgrade", "websocket")])
    recorder.message(x, "client", f"hello {secret}")
    recorder.message(x, "server", orjson.dumps({"type": "x", "text": f"hello {secret}"}).decode())
    recorder.message(x, "server", b"\xff\x00" + secret.encode() + b" \xfe")
    recorder.message(x, "server", f"see {secret}".encode("utf-16-be"))
    recorder.message(x, "server", "see " + "".join(f"%{byte:02X}" for byte in secret.encode()))
    seen.append(journal.read_bytes())
    recorder.close_ws(x, 1008, f"bad key {secret}", "server")
    recorder.end(x, Ended.COMPLETE)
    seen.append(journal.read_bytes())
    return b"\n".join(seen)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secret=TOKENS | ODD | SHAPED, cuts=CUTS, coding=st.sampled_from([None, "gzip"]))
@example(secret=f"q8{'0' * 35};7w", cuts=[229], coding=None)
def test_no_planted_secret_reaches_the_disk(
    tmp_path_factory: pytest.TempPathFactory, secret: str, cuts: list[int], coding: str | None
) -> None:
    path = tmp_path_factory.mktemp("law5") / "run.tape"
    journal = path.with_name("run.tape.journal")
    told: list[str] = []
    recorder = new_recorder(path, Redactor(), told)
    in_journal = record_everything(recorder, secret, cuts, coding, journal)
    summary = recorder.close()
    assert told == []
    assert summary.exchanges == 3
    assert_absent(secret, in_journal, path.read_bytes())
    tape = read_tape(path)
    first, second, third = tape.exchanges
    assert first.response is not None
    assert isinstance(first.response.body, StreamBody)
    texts = [orjson.loads(frame[6:]).get("delta", {}).get("text", "") for frame in first.response.body.frames]
    assert "".join(texts) == "I saw [redacted:x-api-key:1] there"
    assert first.response.body.rewritten
    assert second.response is not None
    assert second.response.body == TextBody("Incorrect API key provided: [redacted:x-api-key:1]. (see /docs)")
    assert third.close is not None
    assert third.close.reason == "bad key [redacted:x-api-key:1]"
    assert "x-api-key" in tape.header.redacted

    before = path.read_bytes()
    assert redact_tape(path, path, Redactor()).redacted == {}
    assert path.read_bytes() == before


@settings(max_examples=15, deadline=None)
@given(secret=TOKENS | SHAPED, cuts=CUTS)
def test_no_planted_secret_stays_in_a_journal_that_a_crash_leaves_behind(
    tmp_path_factory: pytest.TempPathFactory, secret: str, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("law5") / "run.tape"
    journal = path.with_name("run.tape.journal")
    recorder = new_recorder(path, Redactor())
    x = recorder.begin("POST", "https://h.example/v1", "1.1", [("authorization", f"Bearer {secret}")])
    for piece in pieces(orjson.dumps({"messages": [f"see {secret} here", "more"]}), cuts):
        recorder.request_data(x, piece)
    assert_absent(secret, journal.read_bytes(), path.read_bytes())
    assert journal.read_bytes().count(b"x-api-key") == 0
    recorder.close()


@settings(max_examples=25, deadline=None)
@given(
    named=st.text(PLAIN + '"\\ é:,', max_size=30).map(lambda t: f"8Kq2Zx9v{t}9!"),
    shaped=SHAPED,
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_no_secret_known_by_name_or_shape_reaches_the_disk_for_any_split(
    tmp_path_factory: pytest.TempPathFactory, named: str, shaped: str, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("law5") / "run.tape"
    journal = path.with_name("run.tape.journal")
    recorder = new_recorder(path, Redactor())
    x = recorder.begin("POST", "https://h.example/v1", "1.1", [("content-type", "application/json")])
    recorder.request_end(x)
    recorder.response(x, 200, [("content-type", "application/json")])
    output = json.dumps({"user": "me", "password": named})
    body = orjson.dumps({"text": f"the key: {shaped} ok", "api_key": named, "output": output, "z": "end"})
    seen = []
    for piece in pieces(body, cuts):
        recorder.response_data(x, piece)
        seen.append(journal.read_bytes())
    recorder.end(x, Ended.COMPLETE)
    recorder.close()
    for secret in (named, shaped):
        assert_absent(secret, path.read_bytes(), *seen)
    response = read_tape(path).exchanges[0].response
    assert response is not None
    assert isinstance(response.body, JsonBody)
    assert response.body.value["z"] == "end"
    assert json.loads(response.body.value["output"])["user"] == "me"


def test_a_secret_written_before_it_was_known_is_reported_and_removed(tmp_path: Path) -> None:
    secret = "zq81mfLate77CredentialX29"
    path = tmp_path / "late.tape"
    told: list[str] = []
    written = Event()
    recorder = new_recorder(path, Redactor(), told, lambda exchange: written.set())
    x = recorder.begin("POST", "https://h.example/v1", "1.1", [("content-type", "application/json")])
    recorder.request_data(x, orjson.dumps({"messages": [f"a tool printed {secret} here"]}))
    recorder.request_end(x)
    recorder.response(x, 200, [])
    recorder.end(x, Ended.COMPLETE)
    assert written.wait(10)
    assert secret in path.read_text()
    y = recorder.begin("POST", "https://other.example/v1", "1.1", [("authorization", f"Bearer {secret}")])
    recorder.request_end(y)
    recorder.response(y, 200, [])
    recorder.end(y, Ended.COMPLETE)
    summary = recorder.close()
    assert told == [
        f"{path}: a secret (authorization) had been written before it was known as one; it has been removed"
    ]
    assert summary.troubles == tuple(told)
    assert not summary.incomplete
    assert_absent(secret, path.read_bytes())
    first, second = read_tape(path).exchanges
    assert first.request.body == JsonBody({"messages": ["a tool printed [redacted:authorization:1] here"]})
    assert second.request.headers["authorization"] == "Bearer [redacted:authorization:1]"


@settings(max_examples=15, deadline=None)
@given(secret=SHAPED)
def test_an_unknown_key_after_an_equals_sign_does_not_reach_the_disk(
    tmp_path_factory: pytest.TempPathFactory, secret: str
) -> None:
    path = tmp_path_factory.mktemp("law5") / "run.tape"
    journal = path.with_name("run.tape.journal")
    seen = []
    for first in ("plain", "assigned"):
        recorder = new_recorder(path, Redactor())
        x = recorder.begin("POST", "https://h.example/v1", "1.1", [("content-type", "application/json")])
        text = secret if first == "plain" else f"export OPENAI_API_KEY={secret}"
        recorder.request_data(x, orjson.dumps({"messages": [{"role": "user", "content": text}]}))
        recorder.request_end(x)
        recorder.response(x, 200, [("content-type", "text/plain")])
        recorder.response_data(x, f"--key={secret}".encode())
        recorder.end(x, Ended.COMPLETE)
        y = recorder.begin("GET", f"wss://h.example/?foo={secret}", "1.1", [("upgrade", "websocket")])
        recorder.request_end(y)
        recorder.response(y, 101, [("upgrade", "websocket")])
        recorder.message(y, "client", f"FOO={secret}")
        seen.append(journal.read_bytes())
        recorder.end(y, Ended.COMPLETE)
        recorder.close()
        seen.append(path.read_bytes())
        assert_absent(secret, *seen)
        assert read_tape(path).exchanges[1].request.url.startswith("wss://h.example/?foo=[redacted:")


def test_redact_takes_out_a_key_behind_an_equals_sign(tmp_path: Path) -> None:
    path = tmp_path / "old.tape"
    recorder = new_recorder(path, Redactor())
    x = recorder.begin("POST", "https://h.example/v1", "1.1", [("content-type", "application/json")])
    recorder.request_data(x, orjson.dumps({"messages": ["FOO=SECRET-STANDS-HERE-000000000000000"]}))
    recorder.request_end(x)
    recorder.response(x, 200, [])
    recorder.end(x, Ended.COMPLETE)
    recorder.close()
    key = "sk-proj-AbCdEf0123456789ghij4567XY"
    path.write_text(path.read_text().replace("SECRET-STANDS-HERE-000000000000000", key))
    assert redact_tape(path, path, Redactor()).redacted == {"api-key": 1}
    assert read_tape(path).exchanges[0].request.body == JsonBody({"messages": ["FOO=[redacted:api-key:1]"]})


def test_redact_removes_values_that_the_user_names(tmp_path: Path) -> None:
    path = tmp_path / "named.tape"
    recorder = new_recorder(path, Redactor())
    x = recorder.begin("POST", "https://h.example/v1", "1.1", [("content-type", "application/json")])
    recorder.request_data(x, orjson.dumps({"messages": ["the project is called Nightingale", "Nightingale!"]}))
    recorder.request_end(x)
    recorder.response(x, 200, [])
    recorder.end(x, Ended.COMPLETE)
    recorder.close()
    assert redact_tape(path, path, Redactor(["Nightingale"])).redacted == {"pattern": 2}
    assert read_tape(path).exchanges[0].request.body == JsonBody(
        {"messages": ["the project is called [redacted:pattern:1]", "[redacted:pattern:1]!"]}
    )
    assert read_tape(path).header.redacted == ["pattern"]
