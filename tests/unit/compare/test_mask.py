"""What is masked, and what is not."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wiretape.compare.mask import Masker
from wiretape.errors import UsageError
from wiretape.model.volatile_text import mask


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("今天是 2026年02月28日 15时05分30秒 星期六", "今天是 2027年3月1日 9时23分47秒 星期一"),
        ("现在是2026年2月28日，15:05", "现在是2027年12月31日，09:15"),
        ("today is 2026-02-28T15:05:30.123Z.", "today is 2027-12-01T05:05:30Z."),
        ("at 2026-02-28 15:05:30+08:00", "at 2027-01-02 03:04:05+08:00"),
        ("2026-02-28 15:05:30 Saturday", "2026-03-01 15:05:30 Sunday"),
        ("Today's date: Saturday, February 28, 2026", "Today's date: Mon, Mar 1, 2027"),
        ("Sat, 28 Feb 2026 15:05:30 GMT", "Mon, 01 Mar 2027 05:05:30 GMT"),
        (
            "Sat Feb 28 2026 15:05:30 GMT+0800 (China Standard Time)",
            "Mon Mar 01 2027 05:05:30 GMT+0000 (Coordinated Universal Time)",
        ),
        ("2026/2/28", "2026/12/28"),
        ("it is 3:05 PM", "it is 11:15 AM"),
        ("created 1772262330", "created 1782262330"),
        ("created 1772262330123", "created 1782262330456"),
        ("created 1772262330.25", "created 1782262330.5"),
        ("agent 3f2b8c1e-1234-4abc-9def-0123456789ab", "agent 00000000-1234-4abc-9def-0123456789ac"),
        ("Chunk ID: 3fa9c1d2", "Chunk ID: aaa9c1df"),
        ("Chunk ID: 3fa9c1", "Chunk ID: decade"),
        ("Chunk ID: 71466d\nWall time: 0.0000 seconds", "Chunk ID: 41f215\nWall time: 1.2345 seconds"),
        ("<duration_ms>1209</duration_ms>", "<duration_ms>1361</duration_ms>"),
        ('{"duration": 12, "x": 1}', '{"duration": 9, "x": 1}'),
        ("done in 12 ms", "done in 340ms"),
        ("took 3 tries of 1.25s", "took 4 tries of 0.5 s"),
        ("id toolu_01A2b3C4d5E6", "id toolu_09Z8y7X6w5V4"),
        ('<task id="ses_dd61d05a5ffed6jLuZiOlO4wSx">', '<task id="ses_dd61c6ee7ffeBxghBry6078lO2">'),
        ("in /tmp/tmpabcdxyz/notes.txt", "in /tmp/tmpqrstuvw/notes.txt"),
        ("in /tmp/pytest-of-me/pytest-3/test_a0", "in /tmp/pytest-of-me/pytest-17/test_a0"),
        ("in /var/folders/zz/abc123/T/tmpx1/a", "in /var/folders/yy/def456/T/tmpx2/a"),
    ],
)
def test_volatile_text_is_masked(one: str, other: str) -> None:
    masker = Masker()
    assert masker.text(one) == masker.text(other)
    assert masker.text(one) != one


@settings(max_examples=300)
@given(st.uuids())
@example(UUID("ad54c94c-75fc-4e50-9339-652d7d5dd321"))  # holds what looks like an item's id: fc-4e50-…
@example(UUID("12345678-1234-4123-8000-000000000000"))
def test_any_uuid_is_one(uuid: UUID) -> None:
    assert Masker().text(f"accepted as message {uuid}, and queued") == "accepted as message <uuid>, and queued"


@pytest.mark.parametrize(
    "text",
    [
        "version 1.2.3",
        "12345678 pieces",
        "for 60 min",
        "wait 30 s",
        "product id: 42",
        "deadbeef and facade",
        "/tmp/report.txt",
        "the year 2026",
        "2x3",
        "产品评审会",
        "127.0.0.1:8080",
        "May I ask?",
    ],
)
def test_what_is_content_stays(text: str) -> None:
    assert Masker().text(text) == text


def test_files_in_a_temporary_directory_are_told_apart() -> None:
    masker = Masker()
    assert masker.text("/tmp/tmpabcdxyz/a.txt") != masker.text("/tmp/tmpabcdxyz/b.txt")


def test_the_users_own_patterns_are_masked() -> None:
    masker = Masker([r"build-\w+"])
    assert masker.text("at build-alpha now") == "at <masked> now"


def test_a_broken_pattern_is_named() -> None:
    with pytest.raises(UsageError, match=r"\(unclosed"):
        Masker(["(unclosed"])


def test_epochs_that_are_numbers_are_masked_and_other_numbers_are_not() -> None:
    masked = Masker().value(
        {"at": 1772262330, "ms": 1772262330123, "count": 17, "ok": True, "list": ["2026-02-28"], "duration_ms": 7}
    )
    assert masked == {
        "at": "<epoch>",
        "ms": "<epoch>",
        "count": 17,
        "ok": True,
        "list": ["<date>"],
        "duration_ms": "<duration>",
    }


_PARTS = [
    *("It is 2026-02-28 15:05:30.", "See /tmp/tmpabc1/x.", "Sat.", "Feb 28, 2026.", "Rules. ", "took: ", "\n\n"),
    *("id toolu_01A2b3C4d5E6.", "The agent 3f2b8c1e-1234-4abc-9def-0123456789ab waits.", "Saturday", "Be brief."),
    *("at 15:05.", "(China Standard Time)"),
]


@given(st.lists(st.sampled_from(_PARTS), min_size=200, max_size=260))
def test_a_long_text_masked_in_pieces_equals_the_text_masked_as_a_whole(parts: list[str]) -> None:
    text = " ".join(parts)
    assert Masker().text(text) == mask(text)


def test_the_number_of_remaining_notifications_is_masked_only_in_notifications() -> None:
    told = "<task-notification>\n<task-id>a</task-id>\n<remaining>{}</remaining>\n<all-terminal>{}</all-terminal>\n"
    assert mask(told.format(1, "false")) == mask(told.format(0, "true"))
    assert mask("<remaining>1</remaining>") == "<remaining>1</remaining>"
    inside = "<task-notification><result>words <remaining>1</remaining></result></task-notification>"
    assert mask(inside) == inside


def test_a_list_of_agents_has_no_order_and_other_lists_have_one() -> None:
    one, other = {"task_id": "a", "status": "running"}, {"status": "completed", "task_id": "b"}
    mask = Masker().value
    assert mask({"agents": [one, other]}) == mask({"agents": [other, one]})
    assert mask({"agents": [one, other]}) != mask({"agents": [one, {**other, "status": "failed"}]})
    assert mask({"agents": [one, other]}) != mask({"agents": [one, other, other]})
    assert mask({"hits": [one, other]}) != mask({"hits": [other, one]})
    assert mask({"agents": ["b", "a"]}) == {"agents": ["b", "a"]}


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Process Group PGID: 24970", "Process Group PGID: <process>"),
        ("Background PIDs: 24970, 24972\n", "Background PIDs: <process>\n"),
        ("started with pid 4711, listening", "started with pid <process>, listening"),
        ("pid=4711;", "pid=<process>;"),
        ("rapid 4711", "rapid 4711"),
        ("pid 1.5", "pid 1.5"),
        ("PID: (none)", "PID: (none)"),
    ],
)
def test_process_ids_are_masked_after_their_label(text: str, made: str) -> None:
    assert mask(text) == made


def test_process_ids_that_are_numbers_are_masked() -> None:
    assert Masker().value({"pid": 4711, "paid": 4711, "status": "up"}) == {
        "pid": "<process>",
        "paid": 4711,
        "status": "up",
    }
