"""A running program under the debugger: held calls, decisions about them, and the answers the program gets."""

from __future__ import annotations

import json
import re
import socket
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.counting import CountingModel
from tests.support.live import CAPTURES, PATIENCE_S, Stage, recorded, stage
from tests.support.replaying import HandMade, calls, chat, response, stream, user
from tests.support.replaying import reply as chat_reply
from tests.support.sockets import create, events, message
from tests.support.sockets import socket as socket_tape

from wiretape.adapters.http1 import send_playback
from wiretape.adapters.live.model_calls import LiveTape
from wiretape.cli.main import main
from wiretape.debug.commands.registry import COMMANDS
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

pytestmark = pytest.mark.slow

TAPE = str(CAPTURES / "subagents.tape")
AGENT = [sys.executable, "-m", "wiretape.demo.subagents"]
LUNCH = {"title": "Lunch", "start_iso": "2025-06-11T12:00:00", "duration_minutes": 30}


def _exchange(number: int, body: Any, answer: Response, url: str = "https://api.example.com/v1") -> Exchange:
    request = Request("POST", f"{url}/chat/completions", Headers(), JsonBody(body))
    return Exchange(number, number * 1000, request, answer, Ended.COMPLETE, number * 1000 + 500)


def _chats(*said: str, url: str = "https://api.example.com/v1") -> list[Any]:
    """A tape of conversations of one question each: `one`, answered by `answer to one`."""
    made = [
        _exchange(n, chat(user(one)), response(chat_reply(f"answer to {one}")), url) for n, one in enumerate(said, 1)
    ]
    return [HandMade(tuple(made))]


def _ask(on: Stage, text: str, path: str = "/api.example.com/v1/chat/completions", **headers: str) -> Any:
    def ask() -> Any:
        return on.ask(chat(user(text)), path, **headers)

    return ask


def _text(answer: Any) -> str:
    said: str = answer.json()["choices"][0]["message"]["content"]
    return said


# -- where calls are held ----------------------------------------------------------------------------------------------


def test_without_breakpoints_every_call_flows() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        assert "the program ended with exit code 0 after 1 call" in on.type_in("continue")
        assert _text(on.result()) == "answer to one"


def test_step_holds_the_next_call_and_continue_releases_it() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        shown = on.type_in("step")
        assert "call 1 of 1 · before its request" in shown
        assert "call 1 is held before it is sent" in shown
        assert not on.results[0].done()
        assert "request.messages[-1].blocks[0].text = one\n" in on.type_in("print request.messages[-1].blocks[0].text")
        assert "program ended" in on.type_in("continue")
        assert _text(on.result()) == "answer to one"


@pytest.mark.parametrize(
    ("condition", "held"),
    [
        ("1", "before it is sent"),
        ("agent=root", "before it is sent"),
        ("new~one", "before it is sent"),
        ("finish=stop", "with its answer"),
        ('answer~"answer to"', "with its answer"),
    ],
)
def test_a_breakpoint_holds_where_all_its_names_have_values(condition: str, held: str) -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        shown = on.type_in(f"break {condition}", "continue")
        assert f"call 1 is held {held}" in shown
        assert "breakpoint 1: " in shown


def test_a_breakpoint_that_never_applies_holds_nothing() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        assert "program ended" in on.type_in("break error or finish=length or call=7", "continue")


def test_stepi_holds_a_call_again_with_its_answer() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        assert "call 1 is held with its answer" in on.type_in("step", "stepi")
        assert "nowhere" not in on.type_in("print answer")


def test_a_tool_breakpoint_holds_the_answer_and_a_result_breakpoint_the_request() -> None:
    with stage() as on:
        on.play(lambda: [on.ask(recorded(number)).status_code for number in (1, 2, 3, 4)])
        shown = on.type_in('break result~"OK: created"', "break tool=schedule_event", "continue")
        assert "at its tool schedule_event" in shown
        shown = on.type_in("continue")
        assert "call 3 of 3 · before its request · schedule_event (subagent)" in shown
        assert "(the result of create_calendar_event in call 2)" in " ".join(shown.split())
        assert "program ended" in on.type_in("continue")
        assert on.result() == [200, 200, 200, 200]


def test_next_passes_over_the_subagent_and_finish_holds_the_callers_next_call() -> None:
    with stage() as on:
        on.play(lambda: [on.ask(recorded(number)).status_code for number in (1, 2, 3, 4)])
        assert "call 4 of 4 · before its request · root" in on.type_in("step", "next")
    with stage() as on:
        on.play(lambda: [on.ask(recorded(number)).status_code for number in (1, 2, 3, 4)])
        assert "call 2 of 2 · before its request" in on.type_in("step", "step")
        assert "call 4 of 4 · before its request · root" in on.type_in("finish")
        assert "no agent called this one" in on.type_in("finish")


def test_past_calls_are_walked_as_on_a_tape_and_forward_returns_to_held_calls() -> None:
    with stage() as on:
        on.play(lambda: [on.ask(recorded(number)).status_code for number in (1, 2, 3, 4)])
        on.type_in("break 3", "continue")
        assert "call 2 of 3 · after its answer" in on.type_in("reverse-step")
        assert "call 1 of 3" in on.type_in("goto 1")
        assert "call 2 of 3 · after its answer" in on.type_in("step")
        assert "call 3 is held before it is sent" in on.type_in("step")
        assert not on.results[0].done()


# -- decisions about held calls -------------------------------------------------------------------------------------


def test_an_edited_answer_reaches_the_program() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        shown = on.type_in("step", 'edit answer [{"text": "another answer"}]', "held", "serve")
        assert "changed the answer to call 1" in shown
        on.type_in("continue")
        assert _text(on.result()) == "another answer"


def test_an_edited_stream_stays_a_stream() -> None:
    events = ['data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}\n\n',
              'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}\n\n',
              "data: [DONE]\n\n"]  # fmt: skip
    with stage([HandMade((_exchange(1, chat(user("one"), stream=True), stream(*events)),))]) as on:
        on.play(lambda: on.ask(chat(user("one"), stream=True), "/api.example.com/v1/chat/completions").text)
        on.type_in("break finish=stop", "continue", "say It is raining.", "continue")
        said = [json.loads(line[6:]) for line in on.result().splitlines() if line.startswith("data: {")]
        assert "".join(one["choices"][0]["delta"].get("content") or "" for one in said) == "It is raining."


def test_an_edited_body_reaches_the_program_unchanged() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        shown = on.type_in("step", "edit body {}")
        assert "is not an answer in its wire format" in shown
        assert on.live.pending, "it stays held"
        answer = chat_reply("answer to one")
        answer["choices"][0]["message"]["tool_calls"] = calls("weather", "{}", "c1")["tool_calls"]
        assert "changed the" in on.type_in(f"edit body {json.dumps(answer)}", "serve")
        on.type_in("continue")
        assert on.result().json() == answer


def test_an_edited_request_is_compared_with_the_tape_again() -> None:
    with stage(_chats("one", "two")) as on:
        on.play(_ask(on, "one"))
        shown = on.type_in("step", f"edit request {json.dumps(chat(user('two')))}")
        assert shown.count("call 1 is held before it is sent") == 2
        on.type_in("continue")
        assert _text(on.result()) == "answer to two"
        assert [str(left) for left in on.session.report().left_over] != []


def test_a_fault_replaces_the_answer_and_the_next_attempt_gets_it() -> None:
    with stage(_chats("one")) as on:
        on.play(lambda: [_ask(on, "one")(), _ask(on, "one")()])
        assert "gets 429 instead of its answer" in on.type_in("step", "inject 429", "continue")
        first, second = on.result()
        assert (first.status_code, first.headers["retry-after"], second.status_code) == (429, "1", 200)
        assert "injected by wiretape" in first.json()["error"]["message"]
        assert on.session.report().missed == ()


def test_an_unknown_fault_is_an_error_and_the_call_stays_held() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        assert "there is no fault 'boom'" in on.type_in("step", "inject boom")
        assert "→     1  root   request " in on.type_in("held")


@pytest.mark.parametrize("command", ["drop", "inject reset"])
def test_a_dropped_call_gets_no_answer(command: str) -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        on.type_in("step", command, "continue")
        with pytest.raises(Exception, match=r"(?i)disconnected|reset"):
            on.result()


def test_a_delayed_call_is_released_after_its_delay() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one"))
        shown = on.type_in("step", "delay 0.05", "continue")
        assert "call 1 continues in 0.05 s" in shown
        assert _text(on.result()) == "answer to one"


def test_one_call_is_sent_to_the_real_model_and_is_not_a_miss(tmp_path: Path) -> None:
    played = tmp_path / "a.tape"
    with closing(LiveTape(played)) as beside, CountingModel() as model:
        with stage(_chats("one", "two", url=f"{model.url}/v1"), beside) as on:
            on.live.live_tape = str(beside.path)
            place = f"/{model.url.removeprefix('http://')}/v1/chat/completions"
            on.play(_ask(on, "one", place), _ask(on, "two", place))
            shown = on.type_in("break new~one", "continue")
            assert not beside.path.exists()
            shown = on.type_in("live")
            assert f"is sent to the real model (its answer is recorded in {beside.path})".replace(" ", "") in "".join(
                shown.split()
            )
            on.type_in("continue")
            assert _text(on.result()) == "answer 1 to: one"
            assert _text(on.result(1)) == "answer to two"
        assert model.asked == ["one"]
    assert on.session.report().missed == ()
    assert on.session.report().left_over == ()
    assert beside.path == tmp_path / "a-live.tape"
    assert beside.kept == 1
    tape = read_tape(beside.path)
    assert tape.header.note == "called live in the debugger, while a.tape was played"
    (call,) = decode(tape.exchanges)
    assert "answer 1 to: one" in str(call.response)
    assert LiveTape(played).path == tmp_path / "a-live-2.tape"


def test_nothing_is_sent_if_the_answer_could_not_be_recorded(tmp_path: Path) -> None:
    (tmp_path / "no-folder").touch()
    beside = LiveTape(tmp_path / "no-folder" / "a.tape")
    with CountingModel() as model, stage(_chats("one", url=f"{model.url}/v1"), beside) as on:
        on.play(_ask(on, "one", f"/{model.url.removeprefix('http://')}/v1/chat/completions"))
        shown = on.type_in("step", "live", "continue")
        assert "the request was not sent, because" in shown
        assert "call 1 is held before it is sent" in shown
        assert model.asked == []


def test_a_call_stays_held_if_its_model_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no server listens there
        port = taken.getsockname()[1]
        with stage(_chats("one", url=f"http://127.0.0.1:{port}/v1")) as on:
            on.play(_ask(on, "one", f"/127.0.0.1:{port}/v1/chat/completions"))
            shown = on.type_in("step", "live", "continue")
            assert "127.0.0.1 could not be called" in shown
            assert "call 1 is held before it is sent" in shown


def test_several_agents_are_held_independently() -> None:
    with stage(_chats("one", "two", "three")) as on:
        on.play(*(_ask(on, text) for text in ("one", "two", "three")))
        on.type_in("break new~one or new~two", "continue")
        on.wait_for(lambda: len(on.live.pending) == 2 and on.results[2].done())
        waiting = {
            json.loads(body_bytes(one.exchange.request.body))["messages"][0]["content"]: one.number
            for one in on.live.pending
        }
        assert waiting.keys() == {"one", "two"}
        on.type_in(f"goto {waiting['one']} request")
        assert f"call {waiting['one']} gets the recorded answer" in on.type_in(f"serve {waiting['one']}")
        assert f"call {waiting['two']} is held" in on.type_in("continue")
        assert _text(on.result(0)) == "answer to one"
        assert not on.results[1].done()
        on.type_in("continue")
        assert [_text(on.result(place)) for place in range(3)] == ["answer to one", "answer to two", "answer to three"]


def test_a_number_selects_one_of_several_held_calls() -> None:
    with stage(_chats("one", "two")) as on:
        on.play(_ask(on, "one"), _ask(on, "two"))
        on.type_in("break kind=inference", "continue")
        on.wait_for(lambda: len(on.live.pending) == 2)
        on.type_in("goto start")
        assert "calls 1, 2 are held: name one, such as serve 1" in on.type_in("serve")
        assert "call 9 is not held; calls 1, 2 are held" in on.type_in("serve 9")
        listed = on.type_in("info held")
        assert listed.count(" request ") == 2
        assert "call 2 gets the recorded answer; call 1 is held" in on.type_in("serve 2")
        assert "changed the answer to call 1" in on.type_in("say 1: Refused.")
        assert "released 1 call" in on.type_in("release all")
        on.type_in("continue")
        said = {_text(on.result(place)) for place in range(2)}
        assert "Refused." in said
        assert len(said) == 2


def test_a_message_of_a_websocket_can_be_held_but_not_changed() -> None:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    played = socket_tape([create("hi"), *events("r1", message("one")), create("more"), *events("r2", message("two"))])
    with stage([HandMade((played,))]) as on:

        def agent() -> list[str]:
            url = f"ws{on.url.removeprefix('http')}/api.example.com/v1/responses"
            with websockets.connect(url) as talk:
                talk.send(json.dumps(create("hi")[1]))
                return [str(talk.recv(timeout=PATIENCE_S)) for _ in events("r1", message("one"))]

        on.play(agent)
        shown = on.type_in("break agent=root", "break answer~one", "continue")
        assert "call 1 is held before it is sent" in shown
        assert "it can be delayed, but not" in on.type_in("edit answer")
        assert "call 1 is held with its answer" in on.type_in("continue")
        on.type_in("continue")
        assert "response.completed" in on.result()[-1]


# -- keeping a client waiting ------------------------------------------------------------------------------------------


def test_a_held_stream_sends_comments_to_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_playback, "KEEP_ALIVE_SECONDS", 0.02)
    delta = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
    events = stream(f"data: {json.dumps({'choices': [delta]})}\n\n", "data: [DONE]\n\n")
    lines: list[str] = []
    with stage([HandMade((_exchange(1, chat(user("one"), stream=True), events),))]) as on:

        def agent() -> None:
            body = chat(user("one"), stream=True)
            url = f"{on.url}/api.example.com/v1/chat/completions"
            with httpx.stream("POST", url, json=body, timeout=PATIENCE_S, trust_env=False) as answer:
                for line in answer.iter_lines():
                    lines.append(line)  # noqa: PERF402  one by one, as they come

        on.play(agent)
        on.type_in("step")
        on.wait_for(lambda: ": wiretape holds this answer" in lines)
        on.type_in("continue")
        on.result()
    assert [line for line in lines if line and not line.startswith(":")][-1] == "data: [DONE]"


def test_a_clients_timeout_is_shown_and_warned_of() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "one", **{"x-stainless-timeout": "60"}))
        assert "its client times out after 60 s" in on.type_in("step")
        assert on.live.warnings() == []
        since = on.live.clock()
        on.live.clock = lambda: since + 31
        assert on.live.warnings() == ["call 1 (root) has been held for 31 s; its client may time out after 60 s"]
        assert on.live.warnings() == []
        assert "31 s of 60 s" in on.type_in("held")


def test_a_disconnected_client_is_no_longer_held() -> None:
    with stage(_chats("one")) as on:
        body = json.dumps(chat(user("one"))).encode()
        path = "/api.example.com/v1/chat/completions"
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        on.live.running = True
        on.type_in("break 1")
        port = int(on.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
            client.sendall(head.encode() + body)
            on.wait_for(lambda: bool(on.live.pending))
        on.wait_for(lambda: not on.live.pending)


# -- a program that leaves the tape ------------------------------------------------------------------------------------


def test_a_miss_is_held_and_the_nearest_answer_can_be_accepted() -> None:
    with stage() as on:
        other = recorded(3)
        other["input"][-1]["output"] = "OK: created 'Lunch'"
        on.play(lambda: [on.ask(body).status_code for body in (recorded(1), recorded(2), other, recorded(4))])
        shown = on.type_in("continue")
        assert "call 3 of 3 · before its request" in shown
        assert "diverge" in shown
        assert "OK: created 'Lunch'" in shown
        assert "accept (send the nearest recorded answer)" in " ".join(shown.split())
        assert "gets the nearest recorded answer" in on.type_in("accept")
        assert "program ended" in on.type_in("continue")
        assert on.result() == [200, 200, 200, 200]
        assert on.session.report().missed == ()
        drift = on.type_in("break drift", "reverse-continue")
        assert "call 3 of 4 · after its answer" in drift
        assert "OK: created 'Lunch'" in drift


def test_a_released_miss_stays_a_miss() -> None:
    with stage(_chats("one")) as on:
        on.play(_ask(on, "something else"))
        assert "it has no answer to edit yet" in on.type_in("continue", "edit answer")
        on.type_in("continue")
        assert on.result().status_code == 400
        assert len(on.session.report().missed) == 1


# -- by the command ----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "WIRETAPE_DEBUG"):
        monkeypatch.delenv(name, raising=False)


def debug(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["debug", *argv, "--", *AGENT])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_script_edits_an_answer_and_accepts_what_follows(capsys: pytest.CaptureFixture[str]) -> None:
    edit = json.dumps([{"tool": "create_calendar_event", "arguments": LUNCH}])
    script = f"break create_calendar_event; continue; edit answer {edit}; continue; accept; continue; output"
    code, out, _ = debug(capsys, TAPE, "--batch", script)
    assert code == 0
    assert "OK: created 'Lunch' at 2025-06-11T12:00:00 for 30 min" in out  # the program's own tool got the edited call
    assert "[4] " in out


def test_a_miss_makes_the_exit_code_3_unless_the_program_failed(capsys: pytest.CaptureFixture[str]) -> None:
    edit = json.dumps([{"tool": "create_calendar_event", "arguments": LUNCH}])
    code, _, err = debug(
        capsys, TAPE, "--batch", f"break create_calendar_event; continue; edit answer {edit}; continue"
    )
    assert code == 1  # the demo's own: the model refused
    assert "missed      no call on" in err


def test_a_script_that_ends_lets_the_program_end(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = debug(capsys, TAPE, "--batch", "break 2; continue")
    assert code == 0
    assert "call 2 is held" in out
    assert out.rstrip().splitlines()[-1].startswith("[4] ")
    assert "played      4 calls" in err


def test_quit_ends_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = debug(capsys, TAPE, "--batch", "break 2; continue; quit")
    assert code == 128 + 15
    assert "[4]" not in out


def test_stop_ends_the_program_and_its_calls_can_be_inspected(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = debug(capsys, TAPE, "--batch", "break 2; continue; stop; goto 1; print asks")
    assert code == 128 + 15
    assert "the program ended with exit code 143" in out
    assert "schedule_event" in out.rsplit("asks = ", 1)[1]


def test_the_first_error_of_a_script_ends_the_program_and_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = debug(capsys, TAPE, "--batch", "continue; serve")
    assert code == 2
    assert "command 2 (serve): serve needs a held call, and no call is held" in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--live", "-o", "x.tape", TAPE], "omit one of them"),
        (["--live"], "--live needs a new tape and a program"),
        ([], "which tape?"),
        ([TAPE, "-o", "x.tape"], "-o needs --live"),
    ],
)
def test_contradicting_options_are_errors(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["debug", *argv, "--", *AGENT])
    assert code == 2
    assert said in capsys.readouterr().err


def test_commands_for_held_calls_fail_with_a_hint_on_a_tape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debug", TAPE, "--batch", "held"]) == 2
    assert "held needs a running program: wiretape debug TAPE -- CMD" in capsys.readouterr().err


def test_every_command_for_held_calls_is_tried_here() -> None:
    tried = Path(__file__).read_text(encoding="utf-8")
    for command in COMMANDS.values():
        if command.group == "living":
            assert re.search(rf"[\"; ]{command.name}[\"; ]", tried), command.name


# -- what a person sees of secrets -------------------------------------------------------------------------------------


def test_the_screen_shows_no_secret_and_an_edited_request_keeps_it() -> None:
    secret = "Zx9QpL33mmW8kd2QRt"
    kept = {"login": {"password": secret}}
    with stage(_chats("one")) as on:
        path, key = "/api.example.com/v1/chat/completions", f"Bearer {secret}"
        on.play(lambda: on.ask(chat(user(f"hello {secret}"), metadata=kept), path, authorization=key))
        shown = on.type_in("step") + on.type_in("print request") + on.type_in("show") + on.type_in("where")
        assert "[redacted:" in shown
        assert secret not in shown
        edited = chat(user("one"))
        shown = on.type_in(f"edit request {json.dumps(edited)}") + on.type_in("continue")
        assert secret not in shown
        assert _text(on.result()) == "answer to one"
