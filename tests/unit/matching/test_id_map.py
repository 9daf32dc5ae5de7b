"""Ids that the live program creates: learned, and translated in both directions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.replaying import calls, chat, exchange, live, reply, result, said, session, stream, user

from wiretape.compare.difference import Difference, Tier
from wiretape.matching.id_map import IdMap, common_ends
from wiretape.matching.values import Answer
from wiretape.model.http import Exchange, JsonBody, Request, Response, StreamBody, TextBody, WsMessage, body_bytes

WAS, NOW = "3f2b8c1e-1111-4abc-9def-0123456789ab", "aaaaaaaa-2222-4abc-9def-0123456789cd"
OTHER_WAS, OTHER_NOW = "3f2b8c1e-3333-4abc-9def-0123456789ab", "bbbbbbbb-4444-4abc-9def-0123456789cd"


def learnt(*pairs: tuple[str, str]) -> IdMap:
    echoes = IdMap()
    echoes.learn(Difference("p", recorded, now) for recorded, now in pairs)
    return echoes


def spawned(id: str) -> list[dict[str, Any]]:
    return [user("go"), calls("subagent", "{}", "call_1"), result("call_1", f"started subagent {id}")]


def test_an_answer_has_the_live_id_and_the_next_request_matches_exactly() -> None:
    sends = calls("send_message", json.dumps({"subagent_id": WAS}), "call_2")
    answer = {"choices": [{"message": sends, "finish_reason": "tool_calls"}]}
    second = [*spawned(WAS), sends, result("call_2", f"sent to {WAS}")]
    replay = session(exchange(1, chat(*spawned(WAS)), answer), exchange(2, chat(*second), f"done, {WAS}"))

    first = replay.answer(live(chat(*spawned(NOW))))
    assert isinstance(first, Answer)
    assert first.tier is Tier.MASKED
    assert first.exchange.response is not None
    assert isinstance(first.exchange.response.body, JsonBody)
    message = first.exchange.response.body.value["choices"][0]["message"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"subagent_id": NOW}

    then = replay.answer(live(chat(*spawned(NOW), message, result("call_2", f"sent to {NOW}"))))
    assert isinstance(then, Answer)
    assert (then.tier, said(then)) == (Tier.EXACT, f"done, {NOW}")
    assert [drift.where for drift in replay.report().drifted] == ["messages[2].content"]


def test_two_agents_keep_their_ids_apart() -> None:
    def both(one: str, other: str) -> dict[str, Any]:
        return chat(user("go"), user(f"agents {one} and {other}"))

    replay = session(
        exchange(1, both(WAS, OTHER_WAS), f"first {WAS}"),
        exchange(2, chat(user(f"I am {OTHER_WAS}")), f"yes {OTHER_WAS}"),
        exchange(3, chat(user(f"I am {WAS}")), f"yes {WAS}"),
    )
    assert said(replay.answer(live(both(NOW, OTHER_NOW)))) == f"first {NOW}"
    assert said(replay.answer(live(chat(user(f"I am {NOW}"))))) == f"yes {NOW}"
    assert said(replay.answer(live(chat(user(f"I am {OTHER_NOW}"))))) == f"yes {OTHER_NOW}"
    assert [played.tier for played in replay.report().played] == ["masked", "exact", "exact"]


def test_a_temporary_directory_is_translated_in_the_paths_of_its_files() -> None:
    replay = session(
        exchange(1, chat(user("work in /tmp/tmpaaaa1111")), "reading /tmp/tmpaaaa1111/notes.txt"),
    )
    assert said(replay.answer(live(chat(user("work in /tmp/tmpbbbb2222"))))) == "reading /tmp/tmpbbbb2222/notes.txt"


def test_dates_are_never_mapped() -> None:
    replay = session(exchange(1, chat(user("it is 2026-02-28")), "booked for 2026-02-28"))
    assert said(replay.answer(live(chat(user("it is 2027-03-01"))))) == "booked for 2026-02-28"


def test_ids_are_paired_one_to_one_and_the_first_pair_stays() -> None:
    echoes = learnt((WAS, NOW), (WAS, OTHER_NOW), (OTHER_WAS, NOW))
    assert echoes.back_text(f"{NOW} {OTHER_NOW}") == f"{WAS} {OTHER_NOW}"


def test_only_whole_words_are_translated() -> None:
    echoes = learnt(("deadbeef01", "cafebabe02"))
    assert echoes.back_text("cafebabe02, x-cafebabe02 cafebabe023") == "deadbeef01, x-cafebabe02 cafebabe023"


def test_json_inside_strings_is_paired_by_its_members() -> None:
    echoes = learnt((json.dumps({"a": WAS, "b": OTHER_WAS}), json.dumps({"b": OTHER_NOW, "a": NOW})))
    assert echoes.back_text(f"{NOW} {OTHER_NOW}") == f"{WAS} {OTHER_WAS}"


def test_a_value_without_ids_is_the_same_object() -> None:
    echoes = learnt((WAS, NOW))
    body = {"messages": [{"content": "plain text here"}, {"content": NOW}], "model": "m"}
    made = echoes.back(body)
    assert made["messages"][0] is body["messages"][0]
    assert made["messages"][1] == {"content": WAS}
    assert echoes.back(body)["messages"][1] is made["messages"][1]


def test_an_id_that_is_learned_later_changes_earlier_translations() -> None:
    echoes = learnt((WAS, NOW))
    element = {"content": OTHER_NOW}
    assert echoes.back({"messages": [element]}) == {"messages": [element]}
    echoes.learn([Difference("p", OTHER_WAS, OTHER_NOW)])
    assert echoes.back({"messages": [element]}) == {"messages": [{"content": OTHER_WAS}]}


def chunks(*texts: str, index: int = 0) -> list[str]:
    return [f"data: {json.dumps({'choices': [{'index': index, 'delta': {'content': text}}]})}\n\n" for text in texts]


def joined(frames: Any) -> str:
    values = [json.loads(frame.removeprefix(b"data: ")) for frame in frames if b"{" in frame]
    return "".join(value["choices"][0]["delta"]["content"] for value in values)


def test_an_id_that_a_stream_splits_is_mapped_over_the_joined_deltas() -> None:
    parts = ["see ", *[WAS[n : n + 4] for n in range(0, len(WAS), 4)], " now", "!"]
    recorded = exchange(1, chat(), stream(*chunks(*parts), "data: [DONE]\n\n"))
    made = learnt((WAS, NOW)).forward(recorded)
    assert made.response is not None
    assert recorded.response is not None
    body, before = made.response.body, recorded.response.body
    assert isinstance(body, StreamBody)
    assert isinstance(before, StreamBody)
    assert joined(body.frames) == f"see {NOW} now!"
    assert len(body.frames) == len(before.frames)
    assert [body.frames[n] for n in (0, -1, -2, -3)] == [before.frames[n] for n in (0, -1, -2, -3)]


def test_interleaved_deltas_are_not_mixed_up() -> None:
    half = len(WAS) // 2
    one, other = chunks(WAS[:half], WAS[half:]), chunks("x" * 30, " and " + WAS, index=1)
    frames = [one[0], other[0], one[1], other[1]]
    made = learnt((WAS, NOW)).forward(exchange(1, chat(), stream(*frames)))
    assert made.response is not None
    assert isinstance(made.response.body, StreamBody)
    got = list(made.response.body.frames)
    assert joined([got[0], got[2]]) == NOW
    assert joined([got[1], got[3]]) == "x" * 30 + " and " + NOW


def test_a_name_of_another_length_stays_whole() -> None:
    echoes = learnt(("/tmp/tmpaaaa1111", "/tmp/tmpb2"))
    made = echoes.forward(exchange(1, chat(), stream(*chunks("in /tmp/tm", "paaaa", "1111/x"))))
    assert made.response is not None
    assert isinstance(made.response.body, StreamBody)
    assert joined(made.response.body.frames) == "in /tmp/tmpb2/x"


def test_an_answer_without_the_id_is_the_same_object() -> None:
    recorded = exchange(1, chat(), stream(*chunks("nothing here")))
    assert learnt((WAS, NOW)).forward(recorded) is recorded
    plain = exchange(1, chat(), reply("nothing here"))
    assert learnt((WAS, NOW)).forward(plain) is plain


def test_text_answers_are_mapped_too() -> None:
    recorded = exchange(1, chat(), "x")
    assert recorded.response is not None
    response = type(recorded.response)(200, recorded.response.headers, 0, TextBody(f"started {WAS}"))
    made = learnt((WAS, NOW)).forward(type(recorded)(1, 1, recorded.request, response, recorded.ended))
    assert made.response is not None
    assert body_bytes(made.response.body) == f"started {NOW}".encode()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("see abc now", "see abd now", (4, 4)),
        ("same", "same", (0, 0)),
        ("a b", "a b c", (2, 0)),
        ("x-1 y", "x-2 y", (0, 2)),
        ("", "a", (0, 0)),
        ("aa aa", "aa aa aa", (3, 0)),
    ],
)
def test_the_common_ends_are_whole_words(one: str, other: str, expected: tuple[int, int]) -> None:
    start, end = common_ends(one, other)
    assert one[:start] == other[:start]
    assert one[len(one) - end :] == other[len(other) - end :]
    assert start + end <= min(len(one), len(other))
    assert (start, end) == expected or one == other


def test_a_live_exchange_gets_recorded_ids_in_request_answer_and_messages() -> None:
    was, now = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
    echoes = IdMap()
    echoes.learn([Difference("x", f"agent {was} started", f"agent {now} started")])
    request = Request("POST", f"https://a/{now}", body=JsonBody({"id": now}))
    frames = [f'data: {{"t":"{now[:9]}"}}\n\n'.encode(), f'data: {{"t":"{now[9:]}"}}\n\n'.encode()]
    answer = Response(200, body=StreamBody(frames, [1, 2]))
    message = WsMessage(3, "server", TextBody(f"hello {now}"))
    made = echoes.back_exchange(Exchange(1, 0, request, answer, messages=(message,)))
    assert (made.request.url, made.request.body) == (f"https://a/{was}", JsonBody({"id": was}))
    assert made.response is not None
    assert body_bytes(made.response.body).decode().replace('"}\n\ndata: {"t":"', "") == f'data: {{"t":"{was}"}}\n\n'
    assert made.messages == (WsMessage(3, "server", TextBody(f"hello {was}")),)


def test_without_ids_it_is_the_same_exchange() -> None:
    exchange = Exchange(1, 0, Request("GET", "https://a/"))
    assert IdMap().back_exchange(exchange) is exchange
