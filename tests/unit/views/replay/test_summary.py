"""The summary of a replay, to the character."""

from __future__ import annotations

import io

import orjson
import pytest
from rich.console import Console
from tests.support.replaying import chat, exchange, live, session, system, user
from tests.support.sockets import URL, create, events, socket

from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.session import ReplaySession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import Answer, Miss, Stray
from wiretape.views.replay.summary import Unreached, outcome_line, replay_view, tier_mark


def shown(replay: ReplaySession, width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, highlight=False).print(replay_view(replay.report()), crop=False)
    return out.getvalue().splitlines()


def test_everything_that_happened_is_named_once() -> None:
    replay = session(
        exchange(1, chat(system("at 15:05:30"), user("a")), "one"),
        exchange(2, chat(user("b")), "two"),
        exchange(3, chat(user("c")), "three"),
    )
    replay.answer(live(chat(system("at 09:23:47"), user("a"))))
    replay.answer(live(chat(user("b"))))
    replay.answer(live(chat(user("x"))))
    replay.answer(live(None, method="HEAD", url="https://api.example.com/"))
    replay.answer(live(None, method="HEAD", url="https://api.example.com/"))
    replay.refused("CONNECT t.example.com:443", "why")
    replay.let_through("tool.example.com:443")
    assert shown(replay) == [
        "replayed hand.tape",
        "  played      2 calls (1 exact, 1 masked)",
        "  drifted     messages[0].content, new in call 1 (masked)",
        "                recorded  at 15:05:30",
        "                live      at 09:23:47",
        "                             ^",
        "  missed      no call on hand.tape answers POST /v1/chat/completions",
        "                it was never recorded; the nearest, call 3, differs from its",
        "                start at messages[0].content",
        "                  recorded  c",
        "                  live      x",
        "                to record this run instead:",
        "                  wiretape record --update hand.tape -- …",
        "  strayed     HEAD api.example.com/ (2 times)",
        "              CONNECT t.example.com:443: why",
        "  let through tool.example.com:443 (1 connection)",
        "  left over   call 3 not asked for",
    ]


def test_a_clean_replay_is_two_lines() -> None:
    replay = session(exchange(1, chat(user("a")), "one"))
    replay.answer(live(chat(user("a"))))
    assert shown(replay) == ["replayed hand.tape", "  played      1 call (1 exact)"]


def test_a_narrow_screen_loses_nothing() -> None:
    replay = session(exchange(1, chat(system("at 15:05:30 " + "word " * 40), user("a")), "one"))
    replay.answer(live(chat(system("at 09:23:47 " + "word " * 40), user("a"))))
    lines = shown(replay, 50)
    assert all(len(line) <= 50 and line == line.rstrip() for line in lines)
    assert "15:05:30" in "".join(lines)


def test_small_differences_are_counted_and_not_all_written_out() -> None:
    def asks(id: str) -> dict[str, object]:
        history = []
        for n in range(3):
            function = {"name": "t", "arguments": "{}"}
            made = {"id": f"{id}{n}", "type": "function", "function": function}
            history += [{"role": "assistant", "content": None, "tool_calls": [made]}]
            history += [{"role": "tool", "tool_call_id": f"{id}{n}", "content": "ok"}]
        return chat(user("a"), *history)

    replay = session(exchange(1, asks("call_a"), "one"))
    replay.answer(live(asks("call_b")))
    assert shown(replay) == [
        "replayed hand.tape",
        "  played      1 call (1 normalized)",
        "  drifted     messages[1].tool_calls[0].id, new in call 1: call_a0 → call_b0",
        "              messages[2].tool_call_id, new in call 1: call_a0 → call_b0",
        "              messages[3].tool_calls[0].id, new in call 1: call_a1 → call_b1",
        "              3 places more where only an id, a spelling or a volatile setting",
        "              differs (--report lists them)",
    ]


def test_each_outcome_has_its_line() -> None:
    replay = session(
        exchange(1, chat(system("at 15:05:30")), "one"),
        exchange(2, None, {}, url="https://api.example.com/v1/models", method="GET"),
    )
    drifted = replay.answer(live(chat(system("at 09:23:47"))))
    models = replay.answer(live(None, url="https://api.example.com/v1/models", method="GET"))
    miss = replay.answer(live(chat(user("x"))))
    stray = replay.answer(live(None, method="HEAD", url="https://api.example.com/"))
    assert isinstance(drifted, Answer)
    assert isinstance(models, Answer)
    assert isinstance(miss, Miss)
    assert isinstance(stray, Stray)
    assert (tier_mark(drifted), tier_mark(models)) == ("  drift (masked)", "")
    assert outcome_line(models).plain == " x2  GET /v1/models"
    assert outcome_line(miss).plain == "miss  POST /v1/chat/completions  never recorded"
    assert outcome_line(stray).plain == "stray  HEAD api.example.com/"
    assert replay.call_of(models) is None
    call = replay.call_of(drifted)
    assert call is not None
    assert (call.number, call.exchange) == (1, 1)


def test_faults_are_listed_with_the_calls_that_got_them() -> None:
    faults = tuple(map(parse_fault, ["429@1:times=2", "slow@*:x2", "cut@2"]))
    replay = session(exchange(1, chat(user("a")), "one"), exchange(2, chat(user("b")), "two"), faults=faults)
    first, _, late = (replay.answer(live(chat(user("a")))) for _ in range(3))
    assert outcome_line(first).plain == "  1  injected 429@1:times=2"
    assert isinstance(late, Answer)
    assert tier_mark(late) == "  injected slow@*:x2"
    assert shown(replay) == [
        "replayed hand.tape",
        "  played      1 call (1 exact)",
        "  injected    429@1:times=2 into call 1 (2 attempts)",
        "              slow@*:x2 into call 1",
        "              cut@2 was not injected: no request reached the call",
        "  left over   call 2 not asked for",
    ]


def test_wide_characters_are_counted_so_that_the_mark_stands_under_what_differs() -> None:
    same = "你是一名强子开发的智能客服。" * 3
    replay = session(exchange(1, chat(system(same + "15:05:30 星期六"), user("a")), "one"))
    replay.answer(live(chat(system(same + "09:23:47 星期六"), user("a"))))
    assert shown(replay)[2:] == [
        "  drifted     messages[0].content, new in call 1 (masked)",
        "                recorded  …是一名强子开发的智能客服。15:05:30 星期六",
        "                live      …是一名强子开发的智能客服。09:23:47 星期六",
        "                                                     ^",
    ]


def test_a_long_value_goes_on_under_itself_and_the_mark_follows_the_line_that_differs() -> None:
    replay = session(exchange(1, chat(system("at 15:05:30 " + "o" * 60), user("a")), "one"))
    replay.answer(live(chat(system("at 09:23:47 " + "o" * 60), user("a"))))
    assert shown(replay)[3:] == [
        "                recorded  at 15:05:30 oooooooooooooooooooooooooooooooooooooooooo",
        "                          oooooooooooooooooo",
        "                live      at 09:23:47 oooooooooooooooooooooooooooooooooooooooooo",
        "                             ^",
        "                          oooooooooooooooooo",
    ]


def test_a_mark_stands_where_the_shorter_value_ends() -> None:
    replay = session(exchange(1, chat(user("same")), "one"))
    replay.answer(live(chat(user("same and more"))))
    said = shown(replay)
    at = next(number for number, line in enumerate(said) if "live" in line)
    assert said[at - 1 : at + 2] == [
        "                  recorded  same",
        "                  live      same and more",
        "                                ^",
    ]


def test_what_a_terminal_would_obey_is_shown_as_an_escape() -> None:
    replay = session(exchange(1, chat(user("\x1b[31mred")), "one"))
    replay.answer(live(chat(user("\x1b[32mred"))))
    assert "\x1b" not in "".join(shown(replay))


def test_the_command_that_mends_a_miss_is_on_one_line_whatever_its_length() -> None:
    program = "python a_program_of_a_long_name.py --with 'an argument'"
    replay = session(exchange(1, chat(user("a")), "one"), program=program)
    replay.answer(live(chat(user("b"))))
    command = f"wiretape record --update hand.tape -- {program}"
    assert shown(replay)[-3:-1] == ["                to record this run instead:", f"                  {command}"]


def test_connections_to_one_host_that_were_not_opened_are_one_miss() -> None:
    replay = session(exchange(1, chat(user("a")), "one"))
    for _ in range(3):
        replay.not_opened("CONNECT api.openai.com:443", "no TLS to api.openai.com:443\n  do this")
    replay.not_opened("CONNECT api.x.ai:443", "no TLS to api.x.ai:443\n  do that")
    assert [(missed.what, missed.times) for missed in replay.report().missed] == [
        ("CONNECT api.openai.com:443", 3),
        ("CONNECT api.x.ai:443", 1),
    ]
    assert shown(replay)[2:-1] == [
        "  missed      no TLS to api.openai.com:443 (3 times)",
        "                do this",
        "  missed      no TLS to api.x.ai:443",
        "                do that",
    ]


@pytest.mark.parametrize(
    ("program", "failed", "lines"),
    [
        (
            "python a.py",
            True,
            [
                "No model call reached the replay server; nothing of the tape",
                "was played (exit code 3).",
                "  - Does the program read a *_BASE_URL variable, or does it",
                "    have a setting for the base URL?",
                "  - Does it use proxy variables? If it does neither, it may",
                "    have called its model live.",
                "  - --sealed intercepts such a program (Linux), or lists the",
                "    connections that it tried.",
                "  - wiretape doctor -- python a.py shows the checks and",
                "    variables for the program.",
                "  - Serve without a program (wiretape replay hand.tape) and",
                "    set the printed address by hand.",
            ],
        ),
        (
            "",
            False,
            [
                "No model call reached the replay server.",
                "  - Does the program run with the printed variables, and",
                "    does nothing replace them?",
                "  - Does it read one of them, or does it have a setting for",
                "    the base URL?",
            ],
        ),
    ],
)
def test_the_advice_to_a_person_whose_calls_did_not_come_fits_the_screen(
    program: str, failed: bool, lines: list[str]
) -> None:
    out = io.StringIO()
    report = session(exchange(1, chat(user("a")), "one")).report()
    Console(file=out, width=60, color_system=None, highlight=False).print(Unreached(report, program, failed))
    assert out.getvalue().splitlines() == lines


def test_what_a_sealed_program_tried_is_no_question() -> None:
    out = io.StringIO()
    report = session(exchange(1, chat(user("a")), "one")).report()
    Console(file=out, width=60).print(Unreached(report, "python a.py", failed=True, sealed=True))
    assert "  - It was sealed: its connections are listed above.\n" in out.getvalue()
    assert "--sealed" not in out.getvalue()
    assert "live" not in out.getvalue()


def test_calls_of_one_websocket_are_named_each_by_its_number() -> None:
    said = [create("a"), *events("r1"), create("b"), *events("r2")]
    replay = session(socket(said), faults=(parse_fault("429@*"),))
    play = replay.open_socket(live(None, method="GET", url=URL))
    assert isinstance(play, SocketPlay)
    for asked in ("a", "a", "b"):
        play.receive(orjson.dumps(create(asked)[1]).decode())
    assert shown(replay)[1:] == [
        "  played      1 call (1 exact)",
        "  injected    429@* into calls 1, 2",
        "  left over   call 2 not asked for",
    ]
