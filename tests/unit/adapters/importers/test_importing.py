"""Any file at all: what is in it is taken or named, and nothing makes an import fail."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.importing import har_entry, har_file, outcomes

from wiretape.adapters.importers.importing import (
    FORMATS,
    IMPORTERS,
    ImportedExchange,
    RefusedEntry,
    container_of,
    import_files,
    importer,
)
from wiretape.adapters.importers.source import Source
from wiretape.model.http import Exchange

CASSETTE = """\
interactions:
- request: {method: POST, uri: "https://a.example.com/", body: "{}", headers: {a: [b]}}
  response: {status: {code: 200}, headers: {content-encoding: [gzip]}, body: {string: !!binary "H4sIAA=="}}
"""
TRACE = json.dumps({"request": {"url": "https://a.example.com/", "body": {}}, "response": {"status": 200, "body": "x"}})
SEEDS = [
    CASSETTE,
    har_file(har_entry({"text": "{}"})),
    TRACE + "\n" + TRACE + "\n",
    "10:4:type;4:http;}",
    "data: 1\n\n",
]


def check(data: bytes, form: str) -> None:
    if form == "mitm":
        pytest.importorskip("mitmproxy", reason="needs mitmproxy (Python 3.12 or later)")
    found = outcomes(data, form)
    assert found
    for one in found:
        assert isinstance(one, RefusedEntry) or isinstance(one.exchange, Exchange)


@given(st.binary(max_size=200), st.sampled_from([form for form in FORMATS if form != "mitm"]))
def test_any_bytes(data: bytes, form: str) -> None:
    check(data, form)


@given(st.sampled_from(SEEDS), st.integers(0, 600), st.integers(0, 12), st.binary(max_size=4))
def test_recordings_with_something_changed(seed: str, at: int, length: int, put: bytes) -> None:
    data = seed.encode()
    check(data[:at] + put + data[at + length :], "auto" if seed[0] != "1" else "har")


WORDS = re.findall(
    r"\w+",
    """
    request response interactions http_interactions log entries body headers method url uri status code content text
    encoding timings kind data string _webSocketMessages parsed_body
    """,
)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
        max_leaves=30,
    ),
    st.sampled_from([form for form in FORMATS if form != "mitm"]),
)
def test_any_document_of_their_words(document: object, form: str) -> None:
    check(json.dumps(document).encode(), form)


@pytest.mark.parametrize("opening", ["[", '{"a":', "- ", "interactions:\n- [", 'interactions:\n- {"a": '])
def test_deep_nesting(opening: str) -> None:
    first, _, rest = opening.partition("\n")
    text = opening * 50_000 if not rest else f"{first}\n{rest}{rest.removeprefix('- ') * 50_000}"
    for form in ("auto", "vcr"):
        check(text.encode(), form)


@pytest.mark.parametrize("name", IMPORTERS)
def test_importers_say_what_they_are(name: str) -> None:
    assert importer(name).TITLE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CASSETTE, "vcr"),
        ("\ufeff" + CASSETTE, "vcr"),
        (har_file(har_entry()), "har"),
        (json.dumps(json.loads(har_file(har_entry())), indent=2), "har"),
        (TRACE, "jsonl"),
        (TRACE + "\n" + TRACE, "jsonl"),
        ("\ufeff" + TRACE + "\r\n" + TRACE, "jsonl"),
        (f"[{TRACE}]", "jsonl"),
        ('{"a": 1}\n{"b": 2}\n', "body"),
        ('{"a": 1}', "body"),
        ("event: x\ndata: 1\n\n", "body"),
        ("123:4:type;", "mitm"),
    ],
)
def test_files_are_known_by_their_content(text: str, expected: str) -> None:
    assert container_of(Source("x", text.encode())) == expected


def test_files_come_in_their_order_and_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(CASSETTE.replace("!!binary", ""), encoding="utf-8")
    (tmp_path / "a.jsonl").write_text(TRACE + "\n" + TRACE, encoding="utf-8")
    found = list(import_files([tmp_path / "b.yaml", tmp_path / "gone", tmp_path / "a.jsonl", tmp_path]))
    assert [(Path(one.file).name, isinstance(one, ImportedExchange)) for one in found] == [
        ("b.yaml", True),
        ("gone", False),
        ("a.jsonl", True),
        ("a.jsonl", True),
        (tmp_path.name, False),
    ]
