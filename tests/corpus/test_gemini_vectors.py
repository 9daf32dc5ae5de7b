"""generateContent: one small exchange for each case."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.wire import (
    GEMINI,
    answer,
    blocks,
    check_chunking,
    check_paths,
    counts,
    decode,
    exchange,
    frame,
    said,
    stream,
)

from wiretape.model.call import CallRequest, Media, Reasoning, Text, ToolResult
from wiretape.model.http import Ended, JsonBody, TextBody

HOST = "https://generativelanguage.googleapis.com/v1beta"
PLAIN = f"{HOST}/models/gemini-9:generateContent"
LIST = f"{HOST}/models/gemini-9:streamGenerateContent"
ASSIST = "https://cloudcode-pa.googleapis.com/v1internal:streamGenerateContent?alt=sse"
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 150, "thoughtsTokenCount": 30}
CALL = {"functionCall": {"name": "f", "args": {"a": 1, "b": "成都"}}}


def chunk(*parts: Any, finish: Any = None, usage: Any = None, **members: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    body: dict[str, Any] = {
        "candidates": [{**candidate, **members}],
        "modelVersion": "gemini-9-001",
        "responseId": "r1",
    }
    return {**body, "usageMetadata": usage} if usage is not None else body


def text(said: str, **members: Any) -> dict[str, Any]:
    return {"text": said, **members}


def sse(*chunks: Any) -> list[bytes]:
    return [frame(c) for c in chunks]


def listed(*chunks: Any, end: bytes = b"\n]\n") -> list[bytes]:
    """Return a list as Google sends it: pretty-printed, with separators on their own lines."""
    spelled = [json.dumps(c, indent=2, ensure_ascii=False).encode() for c in chunks]
    return [(b",\r\n" if n else b"[") + s + b"\n" for n, s in enumerate(spelled)] + [end]


def request(body: Any, url: str = PLAIN) -> CallRequest:
    call = decode(exchange(url, None, request=body))
    check_paths(call, body)
    return call.request


# -- answers ----------------------------------------------------------------------------------------------------------

STREAM = (
    chunk(text("I ", thought=True)),
    chunk(text("think", thought=True), usage={"promptTokenCount": 100, "totalTokenCount": 100}),
    chunk(text("Hel")),
    chunk(text("lo")),
    chunk(CALL | {"thoughtSignature": "c2ln"}),
    chunk(text(""), finish="STOP", usage={**USAGE, "cachedContentTokenCount": 64}),
)
SAID = [
    ("reasoning", "I think"),
    ("text", "Hello"),
    ("call", None, "f", '{"a":1,"b":"成都"}'),
    ("reasoning", "", "c2ln"),
]


@pytest.mark.parametrize(("url", "frames"), [(GEMINI, sse(*STREAM)), (LIST, listed(*STREAM))])
def test_a_stream_of_events_and_a_list_that_grows(url: str, frames: list[bytes]) -> None:
    response = check_chunking(url, frames, request={"contents": [{"parts": [{"text": "go"}]}]})
    assert said(response) == SAID
    assert (response.model, response.id) == ("gemini-9-001", "r1")
    assert (response.finish, response.raw_finish, response.complete) == ("tool_calls", "STOP", True)
    assert counts(response) == (100, 64, None, 50, 30)
    assert response.streamed
    assert len(response.messages) == 1


def test_the_stream_and_the_plain_answer_are_the_same() -> None:
    whole = chunk(
        text("I think", thought=True),
        text("Hello"),
        CALL | {"thoughtSignature": "c2ln"},
        finish="STOP",
        usage={**USAGE, "cachedContentTokenCount": 64},
    )
    response = answer(PLAIN, whole)
    assert said(response) == SAID
    assert (counts(response), response.finish, response.streamed) == ((100, 64, None, 50, 30), "tool_calls", False)


def test_the_first_token_is_the_first_content() -> None:
    chunks = [chunk(), chunk(text("")), chunk(text("Hi")), chunk(text("!"), finish="STOP")]
    body = stream(sse(*chunks), [10, 20, 30, 40])
    assert answer(GEMINI, body).first_token_at == 130
    assert answer(LIST, stream(listed(*chunks), [10, 20, 30, 40, 50])).first_token_at == 130


def test_texts_are_joined_unless_one_is_signed() -> None:
    parts = [text("a"), text("b", thoughtSignature="c2ln"), text("c"), text("d"), text("", thoughtSignature="ZW5k")]
    response = check_chunking(GEMINI, sse(*(chunk(p) for p in parts), chunk(finish="STOP")))
    assert said(response) == [
        ("text", "a"),
        ("text", "b"),
        ("reasoning", "", "c2ln"),
        ("text", "cd"),
        ("reasoning", "", "ZW5k"),
    ]


def test_parallel_calls_in_one_chunk_and_in_several() -> None:
    one, two = ({"functionCall": {"name": n, "args": {}, "id": f"id-{n}"}} for n in "fg")
    expected = [("call", "id-f", "f", "{}"), ("call", "id-g", "g", "{}")]
    assert said(check_chunking(GEMINI, sse(chunk(one, two, finish="STOP")))) == expected
    assert said(check_chunking(GEMINI, sse(chunk(one), chunk(two), chunk(text(""), finish="STOP")))) == expected


def piece(path: str, more: bool = True, **value: Any) -> dict[str, Any]:
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], **({"willContinue": True} if more else {})}}


PIECES = [
    {"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "c2ln"},
    piece("$.items[0].name", stringValue="成", willContinue=True),
    piece("$.items[0].name", stringValue="都"),
    piece("$.items[0].price", numberValue=0.5),
    piece("$.items[1]", boolValue=True),
    piece("$['odd.key']", nullValue="NULL_VALUE"),
]


@pytest.mark.parametrize("end", [[{"functionCall": {}}], []])
def test_arguments_that_come_in_pieces(end: list[Any]) -> None:
    chunks = [chunk(p) for p in [*PIECES, *end]]
    response = check_chunking(GEMINI, sse(*chunks, chunk(text(""), finish="STOP")))
    expected = '{"items":[{"name":"成都","price":0.5},true],"odd.key":null}'
    assert said(response) == [("call", None, "f", expected), ("reasoning", "", "c2ln")]
    assert (response.messages[0].extra, response.finish) == ((), "tool_calls")


def test_calls_in_pieces_one_after_the_other_and_one_without_arguments() -> None:
    second = {"functionCall": {"name": "g", "willContinue": True}}
    third = {"functionCall": {"name": "h"}}
    parts = [
        *PIECES[:3],
        {"functionCall": {}},
        second,
        piece("$.x", False, stringValue="y"),
        {"functionCall": {}},
        third,
    ]
    response = check_chunking(GEMINI, sse(*(chunk(p) for p in parts), chunk(finish="STOP")))
    assert [b for b in said(response) if b[0] == "call"] == [
        ("call", None, "f", '{"items":[{"name":"成都"}]}'),
        ("call", None, "g", '{"x":"y"}'),
        ("call", None, "h", "{}"),
    ]


def test_a_piece_without_a_place_is_kept() -> None:
    parts = [PIECES[0], piece("$.a", stringValue="x"), piece("$.a.b", stringValue="y"), {"functionCall": {}}]
    response = check_chunking(GEMINI, sse(*(chunk(p) for p in parts), chunk(finish="STOP")))
    assert said(response)[0] == ("call", None, "f", '{"a":"x"}')
    assert dict(response.messages[0].extra)["parts[0].functionCall.partialArgs"] == [
        {"jsonPath": "$.a.b", "stringValue": "y"}
    ]


def test_enums_as_numbers() -> None:
    body = chunk(text("Hi"), finish=1, usage={**USAGE, "promptTokensDetails": [{"modality": 1, "tokenCount": 100}]})
    assert (answer(PLAIN, body).finish, answer(PLAIN, body).raw_finish) == ("stop", "1")
    assert answer(PLAIN, chunk(text("Hi"), finish=2)).finish == "length"
    assert answer(PLAIN, chunk(CALL, finish=1)).finish == "tool_calls"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("MODEL_ARMOR", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("MISSING_THOUGHT_SIGNATURE", "error"),
        ("CONTINUATION", "pause"),
        ("SOMETHING_NEW", None),
        ("FINISH_REASON_UNSPECIFIED", None),
        ("", None),
    ],
)
def test_finish(reason: str, expected: str | None) -> None:
    assert answer(PLAIN, chunk(text("Hi"), finish=reason)).finish == expected


def test_all_tokens_spent_on_thinking() -> None:
    body = {
        "candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}],
        "usageMetadata": {"promptTokenCount": 15, "thoughtsTokenCount": 2, "totalTokenCount": 17},
    }
    response = answer(PLAIN, body)
    assert (response.finish, response.messages, counts(response)) == ("length", (), (15, None, None, 2, 2))


def test_tokens_added_by_server_tools_are_input() -> None:
    usage = {**USAGE, "toolUsePromptTokenCount": 1000, "totalTokenCount": 1150}
    assert counts(answer(PLAIN, chunk(text("Hi"), finish="STOP", usage=usage))) == (1100, None, None, 50, 30)


def test_counts_are_snapshots_and_the_last_whole_one_wins() -> None:
    early = {"trafficType": "ON_DEMAND"}
    high = {"promptTokenCount": 87, "candidatesTokenCount": 21, "totalTokenCount": 186, "thoughtsTokenCount": 78}
    last = {"promptTokenCount": 87, "totalTokenCount": 165, "thoughtsTokenCount": 78}
    frames = sse(chunk(text("a"), usage=early), chunk(text("b"), usage=high), chunk(finish="STOP", usage=last))
    assert counts(check_chunking(GEMINI, frames)) == (87, None, None, 78, 78)
    assert answer(GEMINI, sse(chunk(text("a"), finish="STOP", usage=early))).usage is None


def test_a_blocked_prompt() -> None:
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "No."}
    body = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}}
    for response in (answer(PLAIN, body), check_chunking(GEMINI, sse(body))):
        assert (response.finish, response.raw_finish) == ("content_filter", "PROHIBITED_CONTENT")
        assert said(response) == [("refusal", "No.")]
        assert dict(response.messages[0].extra) == {"promptFeedback": feedback}
        assert (response.complete, response.error, counts(response)) == (True, None, (5, None, None, 0, None))


def test_a_blocked_answer() -> None:
    ratings = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}]
    candidate = {"finishReason": "SAFETY", "finishMessage": "Blocked.", "safetyRatings": ratings, "index": 0}
    response = answer(PLAIN, {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 5}})
    assert (response.finish, said(response)) == ("content_filter", [("refusal", "Blocked.")])
    assert dict(response.messages[0].extra)["safetyRatings"] == ratings


def test_more_candidates() -> None:
    one, two = (
        chunk(text("A"), finish="STOP")["candidates"][0],
        chunk(text("B"), finish="STOP", index=1)["candidates"][0],
    )
    for response in (
        answer(PLAIN, {"candidates": [one, two]}),
        check_chunking(GEMINI, sse({"candidates": [one, two]})),
    ):
        assert [(blocks([m]), m.extra) for m in response.messages] == [
            ([("text", "A")], ()),
            ([("text", "B")], (("choice", 1),)),
        ]


def test_hosted_tools_need_no_answer() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "c1"}, "thoughtSignature": "c2ln"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n", "id": "c1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no", "id": "c2"}},
        {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}}},
        {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"found": 1}}},
        text("Done."),
    ]
    response = answer(PLAIN, chunk(*parts, finish="STOP", groundingMetadata={"webSearchQueries": ["x"]}))
    assert said(response) == [
        ("call", "c1", "code_execution", '{"language":"PYTHON","code":"print(1)"}', "server"),
        ("reasoning", "", "c2ln"),
        ("result", "c1", "code_execution", "1\n", "server"),
        ("result", "c2", "code_execution", "no", "server"),
        ("call", "t1", "GOOGLE_SEARCH_WEB", '{"queries":["x"]}', "server"),
        ("result", "t1", "GOOGLE_SEARCH_WEB", '{"found":1}', "server"),
        ("text", "Done."),
    ]
    results = [b for b in response.messages[0].blocks if isinstance(b, ToolResult)]
    assert [b.is_error for b in results] == [False, True, None]
    assert (response.finish, dict(response.messages[0].extra)["groundingMetadata"]) == (
        "stop",
        {"webSearchQueries": ["x"]},
    )


def test_a_new_kind_of_part_is_kept_whole() -> None:
    part = {"holo_gram": {"x": 1}, "thoughtSignature": "c2ln"}
    assert said(answer(PLAIN, chunk(part, finish="STOP"))) == [("unknown", "holoGram"), ("reasoning", "", "c2ln")]


# -- errors and truncation -----------------------------------------------------------------------------------------

QUOTA = {
    "error": {
        "code": 429,
        "message": "You exceeded your quota.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}],
    }
}


@pytest.mark.parametrize("body", [QUOTA, [QUOTA]])
def test_an_error_plain_or_in_a_list(body: Any) -> None:
    response = answer(GEMINI, JsonBody(body), status=429)
    error = response.error
    assert error is not None
    assert (error.status, error.type, error.code, error.phase) == (429, "RESOURCE_EXHAUSTED", "429", "before_stream")
    assert (error.retryable, error.retry_after_ms, error.message) == (True, 34400, "You exceeded your quota.")
    assert response.messages == ()


def test_an_error_in_the_middle_of_a_stream() -> None:
    failed = {"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}
    bare = json.dumps(failed, indent=2).encode() + b"\n\n"
    for frames in (
        sse(chunk(text("Hi")), failed),
        [*sse(chunk(text("Hi"))), bare],
        [*sse(chunk(text("Hi"))), b"[" + bare.strip() + b"]\n"],
        listed(chunk(text("Hi")), failed),
    ):
        response = answer(LIST, frames)
        assert response.error is not None, frames
        assert (response.error.status, response.error.phase, response.error.retryable) == (503, "mid_stream", True)
        assert said(response) == [("text", "Hi")]
        assert not response.complete


def test_a_truncated_stream_keeps_the_received_part() -> None:
    frames = sse(chunk(text("Hel")), chunk(text("lo")))
    response = answer(GEMINI, stream(frames), ended=Ended.UPSTREAM_CLOSED)
    assert (said(response), response.complete, response.finish) == ([("text", "Hello")], False, None)


def test_a_list_without_its_end_is_truncated() -> None:
    whole = listed(chunk(text("Hel")), chunk(text("lo"), finish="STOP"))
    assert answer(LIST, whole).complete
    assert not answer(LIST, whole[:-1]).complete
    torn = b"".join(whole)
    torn = torn[: torn.index(b'"lo"') + 2]
    response = answer(LIST, [torn], ended=Ended.UPSTREAM_CLOSED)
    assert said(response)[0] == ("text", "Hel")
    assert said(response)[1] == ("unknown", "unreadable_event")
    assert (response.complete, response.finish) == (False, None)


def test_braces_and_brackets_inside_texts_do_not_split_a_list() -> None:
    tricky = 'a } ] [ { " \\ \\" ,'
    response = check_chunking(LIST, listed(chunk(text(tricky)), chunk(text("!"), finish="STOP")))
    assert said(response) == [("text", tricky + "!")]


# -- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elements", ["[[{}]]", "[1, 0, {}]", '["", ""]', "[null]", "[[]]", "[2147483648]"])
def test_a_list_of_other_values_is_kept(elements: str) -> None:
    response = check_chunking(LIST, [elements.encode()])
    assert said(response)[-len(json.loads(elements)) :] == [("unknown", "event")] * len(json.loads(elements))


def test_a_request_in_both_spellings_at_once() -> None:
    body = {
        "system_instruction": {"parts": [{"text": "You help."}], "role": "user"},
        "contents": [
            {"role": "user", "parts": [text("rain?"), {"inline_data": {"mime_type": "image/png", "data": "aGk="}}]},
            {
                "role": "model",
                "parts": [{"function_call": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"}],
            },
            {"parts": [{"function_response": {"name": "f", "response": {"output": "rain"}}}]},
            {"role": "model", "parts": [text("hm", thought=True, thought_signature="c2ln"), text("Rain.")]},
            {
                "role": "function",
                "parts": [{"functionResponse": {"name": "g", "response": {"error": "no"}, "id": "1"}}],
            },
        ],
        "tools": [
            {
                "function_declarations": [
                    {"name": "f", "description": "d", "parameters_json_schema": {"type": "object"}}
                ],
                "google_search": {},
            },
            {"functionDeclarations": [{"name": "g", "parameters": {"type": "OBJECT"}}]},
        ],
        "generationConfig": {"temperature": 0},
    }
    decoded = request(body)
    assert [m.role for m in decoded.messages] == ["system", "user", "assistant", "user", "assistant", "tool"]
    assert blocks(decoded.messages) == [
        ("text", "You help."),
        ("text", "rain?"),
        ("media", "image"),
        ("call", None, "f", '{"a":1}'),
        ("reasoning", "", "c2ln"),
        ("result", None, "f", "rain"),
        ("reasoning", "hm", "c2ln"),
        ("text", "Rain."),
        ("result", "1", "g", "no"),
    ]
    assert (decoded.path(0), decoded.path(1), decoded.path(5)) == ("system_instruction", "contents[0]", "contents[4]")
    assert decoded.messages[3].block_paths == (".parts[0].function_response.response.output",)
    last = decoded.messages[5].blocks[0]
    assert isinstance(last, ToolResult)
    assert last.is_error is True
    assert [(t.name, t.kind) for t in decoded.tools] == [
        ("f", "function"),
        ("googleSearch", "server"),
        ("g", "function"),
    ]
    assert decoded.tools[0].schema == {"type": "object"}
    assert (decoded.model, decoded.stream, decoded.settings) == (
        "gemini-9",
        False,
        {"generationConfig": {"temperature": 0}},
    )


def test_results_that_are_more_than_one_string_are_json() -> None:
    part = {"functionResponse": {"name": "f", "response": {"a": 1, "b": [2]}, "parts": [{"inlineData": {}}]}}
    decoded = request({"contents": [{"role": "user", "parts": [part]}]})
    assert decoded.messages[0].blocks == (ToolResult(None, "f", '{"a":1,"b":[2]}', parts=({"inlineData": {}},)),)


@pytest.mark.parametrize(
    ("contents", "path"),
    [
        ({"parts": [{"text": "Hi"}]}, "contents.parts[0].text"),
        ([{"parts": {"text": "Hi"}}], "contents[0].parts.text"),
        (["Hi"], "contents[0]"),
        ("Hi", "contents"),
    ],
)
def test_contents_in_odd_shapes(contents: Any, path: str) -> None:
    decoded = request({"contents": contents})
    (message,) = decoded.messages
    assert (message.role, message.blocks) == ("user", (Text("Hi"),))
    assert decoded.path(0) + message.block_paths[0] == path


def test_media_kinds_follow_their_type() -> None:
    parts: list[dict[str, Any]] = [
        {"fileData": {"fileUri": "https://x/a.mp4", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 1}},
        {"inlineData": {"mimeType": "application/pdf", "data": ""}},
    ]
    blocks = request({"contents": [{"parts": parts}]}).messages[0].blocks
    assert blocks == (Media("video", parts[0]), Media("file", parts[1]))


@pytest.mark.parametrize(
    ("url", "model", "streams"),
    [
        (f"{HOST}/models/gemini-9:streamGenerateContent", "gemini-9", True),
        (f"{HOST}/models/gemini-9%3AgenerateContent?key=x", "gemini-9", False),
        (f"{HOST}/tunedModels/mine:generateContent", "mine", False),
        (
            "https://x-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/g-1:generateContent",
            "g-1",
            False,
        ),
        ("https://any.example.com/v1beta1/publishers/google/models/g-1:streamGenerateContent", "g-1", True),
        ("https://any.example.com/v1/projects/p/locations/l/endpoints/77:generateContent", "77", False),
    ],
)
def test_the_path_names_the_model(url: str, model: str, streams: bool) -> None:
    call = decode(exchange(url, None, request={"contents": [{"parts": [text("Hi")]}]}))
    assert (call.format, call.request.model, call.request.stream) == ("gemini.generate", model, streams)


@pytest.mark.parametrize("path", ["countTokens", "computeTokens"])
def test_a_token_count_is_not_an_inference(path: str) -> None:
    inner = {"contents": [{"parts": [text("Hi")]}]}
    for asked in (inner, {"generateContentRequest": {"model": "models/gemini-9", **inner}}):
        call = decode(exchange(f"{HOST}/models/gemini-9:{path}", JsonBody({"totalTokens": 31}), request=asked))
        assert (call.kind, call.usage) == ("token_count", None)
        assert blocks(call.request.messages) == [("text", "Hi")]
        check_paths(call, asked)
        assert call.response is not None
        assert said(call.response) == [("media", "token_count")]


def test_code_assist_wraps_both_ways() -> None:
    inner = {"contents": [{"role": "user", "parts": [text("Hi")]}], "session_id": "s", "generationConfig": {"topP": 1}}
    inner["systemInstruction"] = {"parts": [text("You help.")]}
    body = {"model": "gemini-9-pro", "project": "p", "user_prompt_id": "u", "request": inner}
    wrapped: list[dict[str, Any]] = [{"response": c, "traceId": "t1"} for c in STREAM]
    for part in wrapped:
        part["response"] = {k: v for k, v in part["response"].items() if k != "responseId"}
    call = decode(exchange(ASSIST, stream(sse(*wrapped)), request=body))
    check_paths(call, body)
    assert (call.request.model, call.request.stream) == ("gemini-9-pro", True)
    assert (call.request.path(0), call.request.path(1)) == ("request.systemInstruction", "request.contents[0]")
    assert call.request.settings == {
        "project": "p",
        "user_prompt_id": "u",
        "request": {"session_id": "s", "generationConfig": {"topP": 1}},
    }
    response = call.response
    assert response is not None
    assert (said(response), response.id, response.complete) == (SAID, "t1", True)
    assert counts(response) == (100, 64, None, 50, 30)
    plain = answer(ASSIST, {"response": chunk(text("Hi"), finish="STOP"), "traceId": "t2"}, request=body)
    assert (said(plain), plain.id, plain.finish) == ([("text", "Hi")], "r1", "stop")


def test_recognized_by_body_or_response() -> None:
    url = "https://gateway.example.com/x"
    body = {"contents": [{"parts": [text("Hi")]}]}
    for asked in (body, {"model": "m", "request": body}):
        assert decode(exchange(url, None, request=asked)).format == "gemini.generate"
    for told in (JsonBody(chunk(text("Hi"))), JsonBody([chunk(text("Hi"))]), stream(sse(*STREAM))):
        assert decode(exchange(url, told, request={"q": 1})).format == "gemini.generate"


def test_text_that_is_not_json() -> None:
    response = answer(PLAIN, TextBody("<html>Bad gateway</html>"), status=502)
    assert response.error is not None
    assert (response.error.status, response.error.retryable) == (502, True)


def test_signed_thoughts_keep_their_signature() -> None:
    response = answer(PLAIN, chunk(text("hm", thought=True, thoughtSignature="c2ln"), finish="STOP"))
    assert response.messages[0].blocks == (Reasoning("hm", "c2ln", summary=True),)
