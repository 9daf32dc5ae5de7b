"""The scheduler of reruns: against the tape itself, with changed requests, and with other answers."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.sockets import events, message, socket

from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, LiveRequest
from wiretape.model.call import ToolCall, ToolResult
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody, body_bytes
from wiretape.rerun.report import build_rerun_report
from wiretape.rerun.scheduler import Rerun
from wiretape.rerun.values import PlannedRequest
from wiretape.tape.reading.reader import read_tape

CAPTURES = sorted((Path(__file__).parents[3] / "captures").glob("*.tape"))
URL = "https://api.openai.com/v1/chat/completions"
SYSTEM = {"role": "system", "content": "You tell the weather."}
ASKED = {"role": "user", "content": "How warm is it in Bern?"}


def asks(*tools: tuple[str, dict[str, Any]], call_id: str = "call_1") -> dict[str, Any]:
    calls = [
        {"id": f"{call_id}{n or ''}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for n, (name, given) in enumerate(tools)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def told(text: str, call_id: str = "call_1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def response(message: dict[str, Any], status: int = 200) -> Response:
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    body = {
        "id": "c",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    return Response(status, Headers([("content-type", "application/json")]), 0, JsonBody(body))


def loop(*calls: tuple[list[dict[str, Any]], dict[str, Any]]) -> list[Exchange]:
    """Return the exchanges of a tape from (messages, answer) of each call."""
    return [
        Exchange(
            number,
            number * 10,
            Request("POST", URL, Headers(), JsonBody({"model": "m", "messages": copy.deepcopy(messages)})),
            response(answer),
            Ended.COMPLETE,
            number * 10 + 5,
        )
        for number, (messages, answer) in enumerate(calls, 1)
    ]


WARM = asks(("weather", {"city": "Bern"}))
FIRST = [SYSTEM, ASKED]
SECOND = [*FIRST, WARM, told("7 degrees")]
THIRD = [*SECOND, says("Seven degrees."), {"role": "user", "content": "And in Rome?"}]
LOOP = loop((FIRST, WARM), (SECOND, says("Seven degrees.")), (THIRD, says("I do not know.")))


def play(rerun: Rerun, answer: Callable[[PlannedRequest], Response | None] | None = None) -> Rerun:
    while (send := rerun.next()) is not None:
        came = answer(send) if answer is not None else None
        came = came or rerun.recorded(send)
        assert came is not None
        rerun.answered(came)
    return rerun


def outcomes(rerun: Rerun) -> list[tuple[int | None, str]]:
    report = build_rerun_report("x.tape", None, rerun.diverged, rerun.outcomes, rerun.stopped)
    return [(row.call, row.outcome) for row in report.calls]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_every_capture_follows_from_its_answers(path: Path) -> None:
    rerun = play(Rerun(read_tape(path).exchanges))
    assert not rerun.diverged
    assert {row.outcome for row in rerun.outcomes} <= {"equal", "given"}


def test_requests_follow_from_the_call_before_and_user_texts_are_given() -> None:
    rerun = play(Rerun(LOOP))
    assert outcomes(rerun) == [(1, "given"), (2, "equal"), (3, "equal")]
    assert [(one.kind, one.where) for row in rerun.outcomes for one in row.given] == [("message", "messages[5]")]


def edited(change: Callable[[list[Any]], None], call: int = 2) -> list[Exchange]:
    exchanges = copy.deepcopy(LOOP)
    body = exchanges[call - 1].request.body
    assert isinstance(body, JsonBody)
    change(body.value["messages"])
    return exchanges


def test_a_changed_answer_differs_with_both_values() -> None:
    def other_city(messages: list[Any]) -> None:
        messages[2]["tool_calls"][0]["function"]["arguments"] = '{"city": "Basel"}'

    rerun = play(Rerun(edited(other_city)))
    assert rerun.diverged
    (row,) = [row for row in rerun.outcomes if row.outcome == "differs"]
    (apart,) = row.differences
    assert (row.number, apart.where) == (2, "messages[2].tool_calls[0].function.arguments")
    assert (json.loads(apart.recorded)["city"], json.loads(apart.live)["city"]) == ("Basel", "Bern")


def test_a_fork_of_the_conversation_is_given() -> None:
    rerun = play(Rerun(edited(lambda messages: messages.pop(3), call=3)))
    assert rerun.outcomes[-1].note == "its program forked the conversation at call 1"


def test_reminders_prompts_and_settings_are_given() -> None:
    def remind(messages: list[Any]) -> None:
        messages[0]["content"] = "You tell the weather, and the time."
        messages.append({"role": "user", "content": "<reminder>Be short.</reminder>"})

    exchanges = edited(remind)
    body = exchanges[1].request.body
    assert isinstance(body, JsonBody)
    body.value["temperature"] = 0.5
    rerun = play(Rerun(exchanges[:2]))
    (row,) = [row for row in rerun.outcomes if row.number == 2]
    kinds = {one.kind: one.where for one in row.given}
    assert kinds["setting"] == "temperature"
    assert kinds["message"] == "messages[4]"


def test_results_in_another_order_than_the_calls_are_equal() -> None:
    two = asks(("weather", {"city": "Bern"}), ("weather", {"city": "Rome"}))
    later = [*FIRST, two, told("12", "call_11"), told("7")]
    assert not play(Rerun(loop((FIRST, two), (later, says("7 and 12"))))).diverged


def test_a_retried_request_is_equal() -> None:
    exchanges = loop((FIRST, WARM), (FIRST, WARM), (SECOND, says("Seven.")))
    error = Response(
        500, Headers([("content-type", "application/json")]), 0, JsonBody({"error": {"message": "overloaded"}})
    )
    exchanges[0] = replace(exchanges[0], response=error)
    assert outcomes(play(Rerun(exchanges))) == [(1, "given"), (2, "equal"), (3, "equal")]
    live = play(Rerun(exchanges, live=True))
    assert outcomes(live) == [(2, "given"), (3, "equal")]  # a failed attempt is not repeated


# -- other answers ---------------------------------------------------------------------------------------------------


def scripted(*messages: dict[str, Any]) -> Callable[[PlannedRequest], Response]:
    waiting = list(messages)
    return lambda send: response(waiting.pop(0))


def test_answers_with_other_texts_do_not_diverge() -> None:
    rerun = play(Rerun(LOOP, live=True), scripted(WARM, says("It is seven."), says("No idea.")))
    assert not rerun.diverged
    assert outcomes(rerun) == [(1, "given"), (2, "equal"), (3, "differs")]
    (apart,) = [one for row in rerun.outcomes for one in row.differences]
    assert (apart.where, apart.recorded, apart.live) == ("messages[4].content", "Seven degrees.", "It is seven.")


def test_tool_results_are_found_by_arguments() -> None:
    sent: list[Any] = []

    def answer(send: PlannedRequest) -> Response:
        sent.append(send.body["messages"])
        return scripted_answer(send)

    other = asks(("weather", {"city": "Bern"}), call_id="call_new")
    scripted_answer = scripted(other, says("Seven degrees."), says("I do not know."))
    rerun = play(Rerun(LOOP, live=True), answer)
    assert not rerun.diverged
    assert sent[1][-1] == {"role": "tool", "tool_call_id": "call_new", "content": "7 degrees"}


INTERACTIONS = "https://generativelanguage.googleapis.com/v1beta/interactions"


def as_json(value: dict[str, Any]) -> Response:
    return Response(200, Headers([("content-type", "application/json")]), 0, JsonBody(value))


def posted(url: str, *calls: tuple[dict[str, Any], dict[str, Any]]) -> list[Exchange]:
    """Return the exchanges of a tape from (body, answer) of each call."""
    return [
        Exchange(n, n * 10, Request("POST", url, Headers(), JsonBody(body)), as_json(said), Ended.COMPLETE, n * 10 + 5)
        for n, (body, said) in enumerate(calls, 1)
    ]


def test_a_stored_history_continues_from_the_live_answer() -> None:
    call = {"type": "function_call", "id": "c1", "name": "weather", "arguments": {"city": "Bern"}}
    result = {"type": "function_result", "call_id": "c1", "name": "weather", "result": "7 degrees"}
    seven = {"type": "model_output", "content": [{"type": "text", "text": "Seven."}]}
    exchanges = posted(
        INTERACTIONS,
        ({"model": "m", "input": "How warm is it?"}, {"id": "i1", "status": "requires_action", "steps": [call]}),
        (
            {"model": "m", "input": [result], "previous_interaction_id": "i1"},
            {"id": "i2", "status": "completed", "steps": [seven]},
        ),
    )
    assert outcomes(play(Rerun(exchanges))) == [(1, "given"), (2, "equal")]
    sent: list[dict[str, Any]] = []

    def answer(send: PlannedRequest) -> Response:
        sent.append(send.body)
        return as_json({"id": f"live{len(sent)}", "status": "completed", "steps": [call if len(sent) == 1 else seven]})

    assert outcomes(play(Rerun(exchanges, live=True), answer)) == [(1, "given"), (2, "equal")]
    assert sent[1] == {"model": "m", "input": [result], "previous_interaction_id": "live1"}


def test_a_request_that_names_its_history_is_in_the_loop() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{}"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Seven."}]}
    result = {"type": "function_call_output", "call_id": "c1", "output": "7 degrees"}
    exchanges = posted(
        "https://api.openai.com/v1/responses",
        ({"model": "m", "input": "How warm is it?"}, {"id": "r1", "object": "response", "output": [call]}),
        (
            {"model": "m", "input": [result], "previous_response_id": "r1"},
            {"id": "r2", "object": "response", "output": [said]},
        ),
    )
    assert outcomes(play(Rerun(exchanges))) == [(1, "given"), (2, "equal")]


def test_a_plain_prompt_is_given_with_the_reason() -> None:
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/meta.llama3/invoke"
    said = {"generation": "Seven.", "stop_reason": "stop"}
    rerun = play(Rerun(posted(url, ({"prompt": "How warm is it?"}, said), ({"prompt": "And in Rome?"}, said))))
    note = "a plain prompt in bedrock.invoke has no history to continue"
    assert [(row.outcome, row.note) for row in rerun.outcomes] == [("given", note)] * 2


def test_an_unknown_tool_call_stops_the_thread() -> None:
    rerun = play(Rerun(LOOP, live=True), scripted(asks(("weather", {"city": "Oslo"}))))
    assert rerun.diverged
    assert outcomes(rerun) == [(1, "given"), (2, "not reached"), (3, "not reached")]
    assert rerun.outcomes[0].parts == "the model called tools with other arguments"
    (stop,) = rerun.stopped
    assert (stop.number, stop.why) == (1, 'no recorded result for weather({"city": "Oslo"})')


def test_a_hook_adds_results_and_the_next_turn_continues() -> None:
    def run(call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        return found or ToolResult(call.id, call.name, f"ran {call.arguments}")

    answers = scripted(
        asks(("weather", {"city": "Oslo"})), asks(("weather", {"city": "Bern"})), says("Cold."), says("I do not know.")
    )
    rerun = play(Rerun(LOOP, live=True, tools=run), answers)
    assert outcomes(rerun) == [(1, "given"), (None, "new"), (None, "new"), (2, "not reached"), (3, "differs")]
    last = rerun.outcomes[-1]
    assert last.number == 3
    assert not rerun.stopped


def test_a_model_that_calls_no_tools_diverges_until_the_next_turn() -> None:
    sent: list[Any] = []
    answers = scripted(says("I cannot know."), says("Nor that."))

    def answer(send: PlannedRequest) -> Response:
        sent.append(send.body["messages"])
        return answers(send)

    rerun = play(Rerun(LOOP, live=True), answer)
    assert rerun.outcomes[0].parts == "the model answered instead of calling tools"
    assert outcomes(rerun) == [(1, "given"), (2, "not reached"), (3, "differs")]
    assert sent[1] == [*FIRST, says("I cannot know."), {"role": "user", "content": "And in Rome?"}]


def test_a_loop_that_never_ends_is_stopped() -> None:
    rerun = play(
        Rerun(LOOP, live=True),
        lambda send: response(asks(("weather", {"city": "Bern"}), ("weather", {"city": "Bern"}))),
    )
    (stop,) = rerun.stopped
    assert "that the recorded run did not" in stop.why


def test_an_error_stops_the_thread() -> None:
    bad = Response(401, Headers([("content-type", "application/json")]), 0, JsonBody({"error": {"message": "no key"}}))
    rerun = play(Rerun(LOOP, live=True), lambda send: bad)
    assert rerun.stopped[0].why == "the model answered 401: no key"


def test_hooks_change_bodies_and_results() -> None:
    """A fork changes a prompt and a result in this way."""

    def cold(call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        return replace(found, text="-3 degrees") if found is not None else None

    def louder(number: int | None, body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "messages": [{"role": "system", "content": "SHOUT."}, *body["messages"][1:]]}

    sent: list[Any] = []

    def answer(send: PlannedRequest) -> Response | None:
        sent.append(send.body["messages"])
        return None

    play(Rerun(LOOP, live=True, tools=cold, change=louder), answer)
    assert [messages[0]["content"] for messages in sent] == ["SHOUT."] * 3
    assert sent[1][3]["content"] == "-3 degrees"
    assert sent[2][3]["content"] == "-3 degrees"  # it stays in the history


# -- subagents -------------------------------------------------------------------------------------------------------

TASK = "Find out how warm it is in Bern today."
CHILD = [{"role": "system", "content": "You look things up."}, {"role": "user", "content": TASK}]
STARTS = asks(("task", {"prompt": TASK}))
DONE = [*FIRST, STARTS, told("The agent said: It has seven degrees in Bern.")]
FAMILY = loop((FIRST, STARTS), (CHILD, says("It has seven degrees in Bern.")), (DONE, says("Seven.")))


def test_a_subagents_task_comes_from_its_parents_arguments() -> None:
    rerun = play(Rerun(FAMILY))
    assert outcomes(rerun) == [(1, "given"), (2, "equal"), (3, "equal")]
    assert rerun.outcomes[1].note == "its task comes from task of call 1"


def test_a_live_task_reaches_the_subagent_and_its_answer_the_parent() -> None:
    sent: list[Any] = []
    other = asks(("task", {"prompt": "Is it warm in Bern? Look it up."}))
    answers = scripted(other, says("Nine degrees are measured."), says("Nine."))

    def answer(send: PlannedRequest) -> Response:
        sent.append(send.body["messages"])
        return answers(send)

    rerun = play(Rerun(FAMILY, live=True, tools=lambda call, found: found), answer)
    assert not rerun.diverged
    assert sent[1][1]["content"] == "Is it warm in Bern? Look it up."
    assert sent[2][3]["content"] == "The agent said: Nine degrees are measured."


def test_a_subagent_that_was_not_started_is_not_reached() -> None:
    rerun = play(Rerun(FAMILY, live=True), scripted(says("I do not need to know.")))
    assert sorted(outcomes(rerun), key=str) == [(1, "given"), (2, "not reached"), (3, "not reached")]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_live_rerun_sends_the_recorded_requests(path: Path) -> None:
    """The requests of a live rerun find their answers on the tape, as the program's own requests do."""
    tape = read_tape(path)
    session = ReplaySession([tape])

    def answer(send: PlannedRequest) -> Response | None:
        found = session.answer(LiveRequest("POST", send.request.url, Headers(), body_bytes(send.request.body)))
        assert isinstance(found, Answer), found
        return found.exchange.response

    rerun = play(Rerun(tape.exchanges, live=True), answer)
    assert not rerun.diverged
    assert session.report().left_over == ()


def test_calls_of_a_websocket_are_sent_as_http_bodies_without_their_envelope() -> None:
    """Some clients wrap the request in `response`, and multiplexed connections name a stream."""
    asked = {"model": "m", "input": [{"role": "user", "content": "Hello."}]}
    said = ("client", {"type": "response.create", "response": asked, "stream_id": "s1"})
    exchange = socket([said, *events("r1", message("Hi."), stream_id="s1")])
    rerun = Rerun([exchange])
    send = rerun.next()
    assert send is not None
    assert (send.request.method, send.request.url) == ("POST", "https://api.example.com/v1/responses")
    assert send.body == asked
    recorded = rerun.recorded(send)
    assert recorded is not None
    assert isinstance(recorded.body, StreamBody)
    assert (recorded.headers_at, recorded.body.ms[:2]) == (110, [0, 10])
    rerun.answered(recorded)
    assert outcomes(rerun) == [(1, "given")]
