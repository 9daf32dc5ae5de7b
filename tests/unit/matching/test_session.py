"""The recorded answers of live requests."""

from __future__ import annotations

import gzip
from typing import Any

import orjson
import pytest
from tests.support.replaying import (
    CHAT,
    calls,
    chat,
    exchange,
    live,
    reply,
    response,
    result,
    said,
    session,
    stream,
    system,
    user,
)

from wiretape.compare.difference import Tier
from wiretape.matching.values import Answer, Miss, Stray
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response, TextBody, WsMessage

CLOCK = "今天是 2026年02月28日 15时05分30秒 星期六"
LATER = "今天是 2027年03月01日 09时23分47秒 星期一"


def answered(outcome: object) -> Answer:
    assert isinstance(outcome, Answer), outcome
    return outcome


def missed(outcome: object) -> Miss:
    assert isinstance(outcome, Miss), outcome
    return outcome


# -- tiers --


def test_an_equal_request_matches_exactly_whatever_its_key_order_and_spelling() -> None:
    replay = session(exchange(1, chat(user("hi"), temperature=1), "one"))
    body = b'{"temperature": 1.0, "messages": [{"content": "hi", "role": "user"}], "model": "m-1"}'
    found = answered(replay.answer(live(body)))
    assert (found.tier, found.differences, said(found)) == (Tier.EXACT, (), "one")


def test_a_clock_in_the_system_prompt_plays_masked_and_is_drift_with_both_values() -> None:
    replay = session(exchange(1, chat(system(CLOCK), user("hi")), "one"))
    found = answered(replay.answer(live(chat(system(LATER), user("hi")))))
    assert found.tier is Tier.MASKED
    assert [(d.where, d.recorded, d.live) for d in found.differences] == [("messages[0].content", CLOCK, LATER)]


def test_another_path_or_query_is_drift_with_both_values() -> None:
    """No tier but exact looks at a gateway's part of the path: what is marked as drift is listed as such."""
    replay = session(exchange(1, chat(user("hi")), "one"))
    found = answered(replay.answer(live(chat(user("hi")), url="https://gateway.test/team/v1/chat/completions")))
    assert found.tier is Tier.NORMALIZED
    [drift] = replay.report().drifted
    assert (drift.where, drift.minor, drift.tier) == ("path", False, "normalized")
    assert (drift.recorded, drift.live) == ("/v1/chat/completions", "/team/v1/chat/completions")


def test_a_tool_result_with_another_time_is_drift_and_with_another_title_a_miss() -> None:
    def asks(text: str, id: str = "c1") -> dict[str, Any]:
        return chat(user("hi"), calls("create", '{"a": 1}', id), result(id, text))

    recorded = "OK: created '产品评审会' at 2025-06-11T15:00:00 for 60 min"
    replay = session(exchange(1, asks(recorded), "done"))
    title = missed(replay.answer(live(asks(recorded.replace("产品", "设计")))))
    assert title.reason == "diverged"
    assert [d.where for d in title.differences] == ["messages[2].content"]
    assert title.message.splitlines() == [
        'no call on hand.tape answers POST /v1/chat/completions (call 1 of thread "root")',
        "  it diverges from call 1 at messages[2].content",
        "    recorded  OK: created '产品评审会' at 2025-06-11T15:00:00 for 60 min",
        "    live      OK: created '设计评审会' at 2025-06-11T15:00:00 for 60 min",
        "  if the change is intended: wiretape record --update hand.tape -- …",
    ]
    time = answered(replay.answer(live(asks(recorded.replace("15:00", "16:30")))))
    assert (time.tier, [d.where for d in time.differences]) == (Tier.MASKED, ["messages[2].content"])


@pytest.mark.parametrize(
    "change",
    [
        {"system": "You are someone else"},
        {"user": "another question"},
        {"temperature": 0.2},
        {"tools": [{"type": "function", "function": {"name": "other", "parameters": {}}}]},
        {"model": "m-2"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_prompt_tool_model_or_setting_is_never_answered_with_the_old_answer(change: dict[str, Any]) -> None:
    tools = [{"type": "function", "function": {"name": "create", "parameters": {}}}]
    replay = session(exchange(1, chat(system("You are"), user("q"), temperature=1, tools=tools), "one"))
    texts = {"system": "You are", "user": "q", **{k: v for k, v in change.items() if k in ("system", "user")}}
    settings = {"temperature": 1, "tools": tools, **{k: v for k, v in change.items() if k not in texts}}
    outcome = replay.answer(live(chat(system(texts["system"]), user(texts["user"]), **settings)))
    where = {"system": "messages[0].content", "user": "messages[1].content", "tools": "tools[0].function.name"}
    name = next(iter(change))
    assert [d.where for d in missed(outcome).differences or ()] in ([where.get(name, name)], [])
    assert where.get(name, name) in missed(outcome).message


def test_each_step_of_a_loop_gets_its_own_answer_although_the_last_user_message_is_the_same() -> None:
    first = chat(user("go"))
    second = chat(user("go"), calls("a", "{}", "c1"), result("c1", "ok"))
    third = chat(*second["messages"], calls("b", "{}", "c2"), result("c2", "ok"))
    title = chat(system("Give a title"), user("go"))
    replay = session(*[exchange(n, b, f"answer {n}") for n, b in enumerate([first, title, second, third], 1)])
    got = [said(replay.answer(live(body))) for body in (title, first, second, third)]
    assert got == ["answer 2", "answer 1", "answer 3", "answer 4"]


def test_two_identical_requests_get_both_answers_in_order_and_then_it_is_a_miss() -> None:
    replay = session(*[exchange(n, chat(user("ready?")), text) for n, text in enumerate(["no", "yes"], 1)])
    assert [said(replay.answer(live(chat(user("ready?"))))) for _ in range(3)] == ["no", "yes", "miss: already played"]


def test_repeat_gives_the_last_answer_again() -> None:
    replay = session(*[exchange(n, chat(user("ready?")), text) for n, text in enumerate(["no", "yes"], 1)], repeat=True)
    assert [said(replay.answer(live(chat(user("ready?"))))) for _ in range(4)] == ["no", "yes", "yes", "yes"]
    assert sum(played.repeated for played in replay.report().played) == 2


def test_a_recorded_429_and_its_retry_replay_in_order() -> None:
    limited = response({"error": {"message": "slow down"}}, status=429, retry_after="0")
    replay = session(exchange(1, chat(user("hi")), limited), exchange(2, chat(user("hi")), "ok"))
    first = answered(replay.answer(live(chat(user("hi")))))
    assert first.exchange.response is not None
    assert (first.exchange.response.status, first.exchange.response.headers["retry-after"]) == (429, "0")
    assert said(replay.answer(live(chat(user("hi")), x_stainless_retry_count="1"))) == "ok"


def test_two_concurrent_loops_never_get_each_others_answers() -> None:
    def loop(name: str) -> list[dict[str, Any]]:
        return [chat(user(name)), chat(user(name), calls("t", "{}", f"c-{name}"), result(f"c-{name}", name))]

    recorded = [(name, body) for name in ("a", "b", "c") for body in loop(name)]
    replay = session(*[exchange(n, body, f"{name}{n}") for n, (name, body) in enumerate(recorded, 1)])
    order = [loop("c")[0], loop("a")[0], loop("b")[0], loop("a")[1], loop("c")[1], loop("b")[1]]
    assert [said(replay.answer(live(body))) for body in order] == ["c5", "a1", "b3", "a2", "c6", "b4"]


# -- what legitimately changes --


def test_new_ids_match_by_their_order_but_swapped_results_do_not() -> None:
    def asks(one: str, other: str, swap: bool = False) -> dict[str, Any]:
        both = [*calls("a", "{}", one)["tool_calls"], *calls("b", "{}", other)["tool_calls"]]
        first, second = (other, one) if swap else (one, other)
        return chat(
            user("go"),
            {"role": "assistant", "content": None, "tool_calls": both},
            result(first, "sun"),
            result(second, "rain"),
        )

    replay = session(exchange(1, asks("call_1", "call_2"), "ok"))
    assert missed(replay.answer(live(asks("call_x", "call_y", swap=True)))).reason == "diverged"
    found = answered(replay.answer(live(asks("call_x", "call_y"))))
    assert (found.tier, len(found.differences)) == (Tier.NORMALIZED, 4)
    assert [drift.minor for drift in replay.report().drifted] == [True] * 4


def test_tool_arguments_are_compared_as_json_values() -> None:
    replay = session(exchange(1, chat(user("go"), calls("a", '{"x": 1, "y": [2]}', "c"), result("c", "ok")), "one"))
    body = chat(user("go"), calls("a", '{"y":[2],"x":1.0}', "c"), result("c", "ok"))
    assert answered(replay.answer(live(body))).tier is Tier.NORMALIZED


def test_a_moved_cache_marker_plays() -> None:
    url = "https://api.anthropic.com/v1/messages"

    def asks(*marked: bool) -> dict[str, Any]:
        def text(said: str, mark: bool) -> dict[str, Any]:
            return {"type": "text", "text": said, **({"cache_control": {"type": "ephemeral"}} if mark else {})}

        messages = [{"role": "user", "content": [text(f"m{n}", mark)]} for n, mark in enumerate(marked)]
        return {"model": "claude", "max_tokens": 9, "system": [text("s", True)], "messages": messages}

    replay = session(exchange(1, asks(True, False, False), {"type": "message"}, url=url))
    found = answered(replay.answer(live(asks(False, False, True), url=url)))
    assert found.tier is Tier.NORMALIZED
    assert {d.where for d in found.differences} == {
        "messages[0].content[0].cache_control",
        "messages[2].content[0].cache_control",
    }


def test_user_ids_and_signatures_do_not_count() -> None:
    url = "https://api.anthropic.com/v1/messages"

    def asks(signature: str, user_id: str) -> dict[str, Any]:
        thinking = {"type": "thinking", "thinking": "hm", "signature": signature}
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [thinking]}]
        return {"model": "claude", "max_tokens": 9, "messages": messages, "metadata": {"user_id": user_id}}

    replay = session(exchange(1, asks("sig1", '{"session":"1"}'), {"type": "message"}, url=url))
    assert answered(replay.answer(live(asks("sig2", '{"session":"2"}'), url=url))).tier is Tier.NORMALIZED


def test_host_and_path_prefix_do_not_count_but_the_same_host_goes_first() -> None:
    replay = session(
        exchange(1, chat(user("hi")), "one", url="https://one.example.com/v1/chat/completions"),
        exchange(2, chat(user("hi")), "two", url="https://two.example.com/v1/chat/completions"),
    )
    assert said(replay.answer(live(chat(user("hi")), url="https://two.example.com/v1/chat/completions"))) == "two"
    assert said(replay.answer(live(chat(user("hi")), url="/gateway/api/chat/completions"))) == "one"


def test_a_redacted_value_in_the_recording_matches_any_live_one() -> None:
    replay = session(exchange(1, chat(user("my key is [redacted:openai:1], ok?")), "one"))
    found = answered(replay.answer(live(chat(user("my key is sk-live-0123456789, ok?")))))
    assert found.tier is Tier.EXACT


def test_a_compressed_live_body_is_read() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    packed = gzip.compress(orjson.dumps(chat(user("hi"))))
    assert said(replay.answer(live(packed, content_encoding="gzip"))) == "one"


def test_a_multipart_body_matches_whatever_its_boundary() -> None:
    def form(boundary: str) -> str:
        return f'--{boundary}\r\ncontent-disposition: form-data; name="f"\r\n\r\ndata\r\n--{boundary}--\r\n'

    upload = exchange(1, None, {"id": "file-1"}, url="https://api.example.com/v1/files")
    sent = upload.request
    made = type(sent)(sent.method, sent.url, sent.headers, TextBody(form("b0undary-one")))
    replay = session(type(upload)(1, 100, made, upload.response, upload.ended, 150))
    outcome = replay.answer(live(form("other-b0undary").encode(), url=sent.url))
    assert answered(outcome).exchange.number == 1


# -- limits --


def test_the_loosest_tier_is_a_setting() -> None:
    recorded = exchange(1, chat(system(CLOCK), user("hi")), "one")
    drifted = live(chat(system(LATER), user("hi")))
    assert missed(session(recorded, tier=Tier.NORMALIZED).answer(drifted)).reason == "diverged"
    assert missed(session(recorded, tier=Tier.EXACT).answer(drifted)).reason == "diverged"


def test_the_users_own_patterns_are_masked() -> None:
    replay = session(exchange(1, chat(user("build alpha-1")), "one"), mask=(r"alpha-\d",))
    assert answered(replay.answer(live(chat(user("build alpha-2"))))).tier is Tier.MASKED


# -- misses and strays --


def test_a_miss_has_the_providers_error_shape_and_forbids_retries() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    found = missed(replay.answer(live(chat(user("other")))))
    assert (found.status, found.headers["x-should-retry"]) == (400, "false")
    assert orjson.loads(found.body)["error"]["message"] == found.message
    assert replay.misses == [found]


def test_a_miss_names_a_request_kind_that_was_never_recorded() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    body = {"model": "claude", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    found = missed(replay.answer(live(body, url="https://api.anthropic.com/v1/messages")))
    assert found.reason == "never recorded"
    assert "the tape has no call like it" in found.message
    assert orjson.loads(found.body)["type"] == "error"


def test_a_changed_system_prompt_diverges_from_the_call_that_is_otherwise_the_same() -> None:
    replay = session(
        exchange(1, chat(system("title"), user("other")), "x"),
        exchange(2, chat(system("in /home/a/rec"), user("go")), "y"),
    )
    found = missed(replay.answer(live(chat(system("in /home/a/rep"), user("go")))))
    assert (found.reason, str(found.nearest)) == ("diverged", "call 2")
    assert [d.where for d in found.differences] == ["messages[0].content"]


def test_the_nearest_call_has_the_longest_common_prefix() -> None:
    history = [user("go"), calls("a", "{}", "c1"), result("c1", "one")]
    replay = session(
        exchange(1, chat(user("go")), "x"),
        exchange(2, chat(*history), "y"),
        exchange(3, chat(*history, calls("b", "{}", "c2"), result("c2", "two")), "z"),
    )
    found = missed(replay.answer(live(chat(*history, calls("b", "{}", "c2"), result("c2", "three")))))
    assert (str(found.nearest), [d.where for d in found.differences]) == ("call 3", ["messages[4].content"])
    shorter = missed(replay.answer(live(chat(*history[:2]))))
    assert str(shorter.nearest) in ("call 2", "call 1")


def test_telemetry_and_probes_are_strays_and_never_misses() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    for method, url, body in [
        ("HEAD", "https://api.anthropic.com/", None),
        ("POST", "https://telemetry.example.com/v1/events", {"events": [1]}),
        ("GET", "https://api.openai.com/v1/models", None),
    ]:
        assert isinstance(replay.answer(live(body, url=url, method=method)), Stray)
    report = replay.report()
    assert (len(report.strayed), report.missed) == (3, ())


def test_other_recorded_exchanges_are_played_for_their_own_host_only() -> None:
    models = exchange(1, None, {"data": []}, url="https://api.openai.com/v1/models", method="GET")
    replay = session(models)
    elsewhere = replay.answer(live(None, url="https://evil.example.com/v1/models", method="GET"))
    assert isinstance(elsewhere, Stray)
    assert answered(replay.answer(live(None, url=models.request.url, method="GET"))).exchange is models
    assert isinstance(replay.answer(live(None, url=models.request.url, method="GET")), Stray)


def test_an_answer_whose_body_was_lost_is_never_played_as_empty() -> None:
    lost = Response(200, Headers([("content-type", "application/json"), ("content-length", "512")]))
    replay = session(exchange(1, chat(user("hi")), lost))
    found = missed(replay.answer(live(chat(user("hi")))))
    assert found.reason == "not playable"
    assert "512 bytes" in found.message


def test_a_recorded_websocket_is_a_miss_that_says_why() -> None:
    url = "wss://api.example.com/v1/responses"
    frame = WsMessage(10, "client", JsonBody({"type": "response.create"}))
    upgraded = Response(101, Headers([("upgrade", "websocket")]))
    socket = Exchange(1, 0, Request("GET", url), upgraded, Ended.COMPLETE, 90, (frame,))
    replay = session(socket, exchange(2, chat(user("hi")), "one"))
    asked = live(None, url="https://api.example.com/v1/responses", method="GET", upgrade="websocket")
    found = missed(replay.answer(asked))
    assert found.reason == "not playable"
    assert "x1 was recorded as a WebSocket" in found.message
    assert replay.report().sockets == 1
    assert said(replay.answer(live(chat(user("hi"))))) == "one"


def test_unplayed_answers_are_left_over() -> None:
    replay = session(exchange(1, chat(user("a")), "one"), exchange(2, chat(user("b")), "two"))
    replay.answer(live(chat(user("b"))))
    assert [str(name) for name in replay.report().left_over] == ["call 1"]


def test_the_same_drift_in_a_growing_history_is_listed_once() -> None:
    prompts = {clock: system(clock) for clock in (CLOCK, LATER)}  # one object, as in a tape that was read

    def history(clock: str, length: int) -> dict[str, Any]:
        turns = [
            message for n in range(length) for message in (user(f"q{n}"), {"role": "assistant", "content": f"a{n}"})
        ]
        return chat(prompts[clock], *turns, user("last"))

    replay = session(*[exchange(n + 1, history(CLOCK, n), f"answer {n}") for n in range(4)])
    assert [said(replay.answer(live(history(LATER, n)))) for n in range(4)] == [f"answer {n}" for n in range(4)]
    (drift,) = replay.report().drifted
    assert (drift.where, drift.minor, [name.call for name in drift.calls]) == ("messages[0].content", False, [1])
    assert [played.tier for played in replay.report().played] == ["masked"] * 4


def test_a_cut_stream_and_an_unreachable_host_are_answers_too() -> None:
    cut = exchange(1, chat(user("a")), stream("data: 1\n\n"), ended=Ended.UPSTREAM_CLOSED)
    gone = exchange(2, chat(user("b")), None, ended=Ended.UPSTREAM_UNREACHABLE)
    replay = session(cut, gone)
    assert answered(replay.answer(live(chat(user("a"))))).exchange is cut
    assert answered(replay.answer(live(chat(user("b"))))).exchange is gone


def test_a_body_that_is_not_json_is_matched_unchanged() -> None:
    odd = exchange(1, None, reply("x"), url=CHAT)
    made = type(odd.request)("POST", CHAT, odd.request.headers, TextBody('{"a": 1, "a": 2, oops'))
    replay = session(type(odd)(1, 100, made, odd.response, odd.ended, 150))
    assert answered(replay.answer(live(b'{"a": 1, "a": 2, oops'))).tier is Tier.EXACT
    assert not isinstance(replay.answer(live(b'{"a": 1, "a": 3, oops')), Answer)


def test_an_error_inside_wiretape_is_a_miss_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))

    def broken(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(replay._matcher, "probe", broken)
    found = missed(replay.answer(live(chat(user("hi")))))
    assert (found.reason, found.status, found.headers["x-should-retry"]) == ("fault", 400, "false")
    assert "RecursionError: too deep" in found.message
    assert replay.misses == [found]


@pytest.mark.parametrize("depth", [100, 300, 400])
@pytest.mark.parametrize(("place", "reason"), [("message", "never recorded"), ("settings", "diverged")])
def test_a_deeply_nested_body_matches_or_misses_as_any_other(place: str, reason: str, depth: int) -> None:
    def asked(leaf: str) -> bytes:
        deep = '{"a":[' * (depth // 2) + f'"{leaf}"' + "]}" * (depth // 2)
        block = f'{{"type":"text","text":"hi","x":{deep if place == "message" else 1}}}'
        rest = f',"metadata":{{"deep":{deep}}},"tool_choice":{deep}' if place == "settings" else ""
        return f'{{"model":"m","messages":[{{"role":"user","content":[{block}]}}]{rest}}}'.encode()

    replay = session(exchange(1, orjson.loads(asked("one")), "one"))
    found = replay.answer(live(asked("other")))
    assert isinstance(found, Miss)
    assert found.reason == reason
    answer = replay.answer(live(asked("one")))
    assert isinstance(answer, Answer)
    assert answer.tier is Tier.EXACT


def test_a_very_deep_body_gets_an_outcome() -> None:
    deep = b'{"model": "m", "messages": [' + b'{"a": [' * 400 + b"1" + b"]}" * 400 + b"]}"
    outcome = session(exchange(1, chat(user("hi")), "one")).answer(live(deep))
    assert isinstance(outcome, Miss)
