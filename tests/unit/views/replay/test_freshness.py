from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.support.replaying import chat, exchange, reply, response, user
from tests.support.taping import STARTED

from wiretape.matching.verify.freshness import Freshness, Version, freshness
from wiretape.model.http import Exchange
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape
from wiretape.views.replay.freshness import freshness_view
from wiretape.views.show.tape import client_words

MEND = "wiretape record --update hand.tape -- agent"


def tape(*exchanges: Exchange) -> Tape:
    return Tape(Path("hand.tape"), Header(started=STARTED, recorder="w"), exchanges)


def shown(found: Freshness, width: int = 80, full: bool = False) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(freshness_view(found, MEND, full=full), crop=False)
    return captured.get()


@pytest.fixture
def found() -> Freshness:
    old = [exchange(1, chat(user("one"))), exchange(2, chat(user("two")), reply("yes")), exchange(3, chat(user("3")))]
    refused = response({"error": {"message": "no such model", "type": "gone"}}, 404)
    new = [old[0], exchange(2, chat(user("zwei")), refused)]
    made = freshness(tape(*old), tape(*new))
    version = Version(header="user-agent", recorded=("sdk/1",), live=())
    return made.model_copy(update={"age_days": 40, "live": "a live run", "versions": (version,)})


def test_each_call_has_a_row_and_what_changed_stands_under_it(found: Freshness) -> None:
    assert shown(found) == (
        "hand.tape, recorded 40 days before, and a live run\n"
        "\n"
        "tape  live  call                       request  verdict\n"
        "   1     1  POST /v1/chat/completions  exact    same\n"
        "   2     2  POST /v1/chat/completions  changed  changed\n"
        "    request: messages[0]\n"
        "      recorded  two\n"
        "      live      zwei\n"
        "    answer: status 200 → 404\n"
        "    answer: error (nothing) → gone\n"
        "   3        POST /v1/chat/completions           vanished\n"
        "\n"
        "user-agent                  sdk/1 → (nothing)\n"
        "\n"
        "drifted: 1 changed, 1 vanished, 1 same\n"
        f"to record what drifted:\n  {MEND}\n"
        "call 3 of the tape will be gone then: run all programs that made them\n"
    )


def test_a_tape_whose_requests_are_answered_otherwise_must_be_recorded_anew() -> None:
    old = [exchange(1, chat(user("one"))), exchange(2, chat(user("two")))]
    refused = response({"error": {"message": "no such model", "type": "gone"}}, 404)
    for new, otherwise in (
        ([exchange(1, chat(user("one")), refused), old[1]], True),
        ([exchange(1, chat(user("eins")), refused), old[1]], False),
        ([old[0]], False),
    ):
        found = freshness(tape(*old), tape(*new))
        assert (found.drifted, found.answered_otherwise) == (True, otherwise)
        assert ("to record it anew, since requests are answered otherwise now:\n" in shown(found)) is otherwise


def test_a_change_that_is_told_already_is_above() -> None:
    old, new = ([exchange(n, chat(user(text), user(f"part {n}"))) for n in (1, 2)] for text in ("one", "uno"))
    rows = [line for line in shown(freshness(tape(*old), tape(*new))).splitlines() if "POST" in line]
    assert [line.split()[-2:] for line in rows] == [["changed", "changed"], ["above", "changed"]]
    assert "drifted: 2 changed" in shown(freshness(tape(*old), tape(*new)))


def test_where_a_model_did_not_answer_nothing_is_to_be_recorded() -> None:
    limited = response({"error": {"message": "slow", "type": "limit"}}, 429)
    old = [exchange(1, chat(user("one"))), exchange(2, chat(user("two")))]
    found = freshness(tape(*old), tape(old[0], exchange(2, chat(user("two")), limited)))
    assert shown(found).splitlines()[-3:] == [
        "",
        "undecided: 1 unanswered, 1 same",
        "live call 2 got no answer that tells: verify again before anything is recorded",
    ]
    assert MEND not in shown(found)
    drifted = freshness(tape(*old), tape(exchange(1, chat(user("uno"))), exchange(2, chat(user("two")), limited)))
    assert "drifted: 1 changed, 1 unanswered" in shown(drifted)
    assert MEND not in shown(drifted)


def test_attempts_that_were_made_again_are_counted() -> None:
    old = tape(exchange(1, chat(user("one"))))
    for times, said in ((1, "1 attempt that failed, and was made again"), (2, "2 attempts that failed, and were made")):
        assert f"not compared: {said}" in shown(freshness(old, old).model_copy(update={"tried_again": times}))


def test_an_answer_that_the_recorder_lost_is_one_that_an_update_asks_for() -> None:
    whole = exchange(1, chat(user("one")))
    found = freshness(tape(replace(whole, response=None, ended=None)), tape(whole))
    assert (found.drifted, found.answered_otherwise) == (True, False)
    assert "to record what drifted:\n" in shown(found)


def test_of_a_run_that_broke_off_only_what_it_came_to_counts() -> None:
    old = tape(exchange(1, chat(user("one"))), exchange(2, chat(user("two"))))
    same = freshness(old, tape(old.exchanges[0])).cut_short()
    assert ([call.verdict for call in same.calls], same.drifted) == (["same"], False)
    assert shown(same).endswith("fresh so far: 1 call, nothing has changed; 1 of the tape not reached\n")
    changed = freshness(old, tape(exchange(1, chat(user("uno"))))).cut_short()
    assert ([call.verdict for call in changed.calls], changed.drifted) == (["changed"], True)


def test_a_fresh_tape_needs_no_command() -> None:
    old = tape(exchange(1, chat(user("one"))))
    text = shown(freshness(old, old))
    assert text.endswith("fresh: 1 call, nothing has changed\n")
    assert MEND not in text


def test_of_many_calls_the_same_ones_are_counted_only() -> None:
    old = [exchange(n, chat(user(f"question {n} of many"))) for n in range(1, 31)]
    found = freshness(tape(*old), tape(*old[:-1]))
    assert len(shown(found).splitlines()) == 9
    assert len(shown(found, full=True).splitlines()) == 38


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_it_fits_any_width(found: Freshness, width: int) -> None:
    lines = [line for line in shown(found, width).splitlines() if MEND not in line]
    assert max(len(line) for line in lines) <= max(width, 44)


def test_a_tape_tells_who_spoke_as_a_person_wants_it() -> None:
    assert client_words(None) == ""
    told = client_words({"user-agent": ["sdk/1", "sdk/2"], "anthropic-version": "2023-06-01"})
    assert told == "sdk/1, sdk/2; anthropic-version 2023-06-01"
