"""In process: misses, cuts, cancellation, concurrency and nesting, as programs and their SDKs see them."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.inprocess import answers, ask, only
from tests.support.replaying import chat, exchange, reply, stream, taped, user
from tests.support.upstream import CHAT_ANSWER, CHAT_EVENTS, Upstream

import wiretape
from wiretape.errors import MissError, MissInterrupt, TapeTooOld, UsageError
from wiretape.model.http import Ended
from wiretape.tape.reading.reader import read_tape

httpx = pytest.importorskip("httpx")
httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed")
aiohttp = pytest.importorskip("aiohttp", reason="aiohttp is not installed")
requests = pytest.importorskip("requests", reason="requests is not installed")
openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
anthropic = pytest.importorskip("anthropic", reason="the anthropic SDK is not installed")

OPENAI = "https://api.openai.com/v1/chat/completions"
ANTHROPIC = "https://api.anthropic.com/v1/messages"


def test_openai_raises_a_miss_immediately_and_the_context_raises_it_again() -> None:
    tape = taped(exchange(1, chat(user("hi")), "one", url=OPENAI))
    start = time.monotonic()
    with (
        pytest.raises(MissError) as told,
        wiretape.replay(tape) as ctx,
        openai.OpenAI(max_retries=3) as client,
        pytest.raises(openai.BadRequestError) as seen,
    ):
        client.chat.completions.create(model="m-1", messages=[user("other")])
    assert time.monotonic() - start < 5
    for error in (seen, told):
        assert "no call on hand.tape answers POST /v1/chat/completions" in str(error.value)
        assert "live      other" in str(error.value)
        assert 'to record it: run this once in wiretape.record("hand.tape", force=True)' in str(error.value)
    assert len(ctx.report.missed) == 1  # not retried


def test_a_raised_miss_passes_an_sdk_that_swallows_exceptions() -> None:
    tape = taped(exchange(1, chat(user("hi")), "one", url=OPENAI))

    async def agents() -> None:
        async with openai.AsyncOpenAI(max_retries=3) as client:
            await client.chat.completions.create(model="m-1", messages=[user("other")])

    with pytest.raises(MissInterrupt, match="live      other"), wiretape.replay(tape, on_miss="raise"):
        asyncio.run(agents())


@pytest.mark.parametrize("library", ["requests", "aiohttp", "httpx"])
def test_a_miss_is_raised_at_the_call_in_every_library(library: str) -> None:
    tape = taped(exchange(1, chat(user("hi")), "one", url=OPENAI))

    async def by_aiohttp() -> None:
        async with aiohttp.ClientSession() as session, session.post(OPENAI, json=chat(user("other"))) as response:
            await response.read()

    calls = {
        "requests": lambda: requests.post(OPENAI, json=chat(user("other"))),
        "httpx": lambda: httpx.post(OPENAI, json=chat(user("other"))),
        "aiohttp": lambda: asyncio.run(by_aiohttp()),
    }
    with pytest.raises(MissInterrupt, match="live      other"), wiretape.replay(tape, on_miss="raise"):
        calls[library]()


def test_an_error_of_the_body_takes_precedence_and_carries_the_miss() -> None:
    tape = taped(exchange(1, chat(user("hi")), "one", url=OPENAI))

    @wiretape.replay(tape)
    def run() -> None:
        httpx.post(OPENAI, json=chat(user("other"))).json()["choices"]

    with pytest.raises(KeyError) as seen:
        run()
    assert any("live      other" in note for note in seen.value.__notes__)


def test_anthropic_streams_event_by_event_sync_and_async() -> None:
    events = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "c",
         "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 0}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "one "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "two"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]  # fmt: skip
    frames = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    asked = {"model": "c", "max_tokens": 9, "messages": [user("hi")], "stream": True}
    tape = taped(
        *(exchange(n, asked, stream(*frames, ms=[0, 0, 0, 300, 300, 300, 300]), url=ANTHROPIC) for n in (1, 2))
    )

    def gaps(times: list[float]) -> float:
        return max(after - before for before, after in itertools.pairwise(times))

    async def by_async() -> tuple[str, float]:
        text, times = "", []
        async with (
            anthropic.AsyncAnthropic() as client,
            client.messages.stream(model="c", max_tokens=9, messages=[user("hi")]) as streamed,
        ):
            async for piece in streamed.text_stream:
                text, times = text + piece, [*times, time.monotonic()]
        return text, gaps(times)

    with wiretape.replay(tape, pace=1):
        text, times = "", []
        with (
            anthropic.Anthropic() as client,
            client.messages.stream(model="c", max_tokens=9, messages=[user("hi")]) as streamed,
        ):
            for piece in streamed.text_stream:
                text, times = text + piece, [*times, time.monotonic()]
        assert text == "one two"
        assert gaps(times) > 0.2  # the second came 300 ms later, not with the first
        text, gap = asyncio.run(by_async())
        assert text == "one two"
        assert gap > 0.2


def test_a_paced_replay_stops_when_it_is_cancelled() -> None:
    tape = taped(exchange(1, chat(user("hi")), stream("data: 1\n\n", "data: 2\n\n", ms=[0, 60_000]), url=OPENAI))

    async def by_httpx() -> None:
        async with (
            httpx.AsyncClient(timeout=None) as client,
            client.stream("POST", OPENAI, json=chat(user("hi"))) as response,
        ):
            await response.aread()

    async def by_aiohttp() -> None:
        async with aiohttp.ClientSession() as session, session.post(OPENAI, json=chat(user("hi"))) as response:
            await response.read()

    for call in (by_httpx, by_aiohttp):
        start = time.monotonic()

        async def cancelled(call: Any = call) -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call(), 0.3)

        with wiretape.replay(tape, pace=1):
            asyncio.run(cancelled())
        assert time.monotonic() - start < 5


@pytest.mark.parametrize("library", ["httpx", "requests", "aiohttp"])
def test_a_cut_stream_is_cut_at_the_same_byte(library: str) -> None:
    cut = exchange(1, chat(user("hi")), stream("data: 1\n\n", "data: 2\n\n"), url=OPENAI, ended=Ended.UPSTREAM_CLOSED)
    got: list[bytes] = []

    def by_httpx() -> None:
        with httpx.stream("POST", OPENAI, json=chat(user("hi"))) as response:
            got.extend(response.iter_raw())

    def by_requests() -> None:
        with requests.post(OPENAI, json=chat(user("hi")), stream=True) as response:
            got.extend(response.iter_content(None))

    async def by_aiohttp() -> None:
        async with aiohttp.ClientSession() as session, session.post(OPENAI, json=chat(user("hi"))) as response:
            async for chunk in response.content.iter_any():
                got.append(chunk)

    calls: dict[str, tuple[Any, Any]] = {
        "httpx": (by_httpx, httpx.RemoteProtocolError),
        "requests": (by_requests, requests.exceptions.ChunkedEncodingError),
        "aiohttp": (lambda: asyncio.run(by_aiohttp()), aiohttp.ClientPayloadError),
    }
    call, error = calls[library]
    with wiretape.replay(taped(cut)), pytest.raises(error):
        call()
    assert got == [b"data: 1\n\n", b"data: 2\n\n"]


@pytest.mark.parametrize("library", ["httpx", "requests", "aiohttp"])
@pytest.mark.parametrize(
    ("path", "ended"),
    [
        ("/reset-at-once", Ended.UPSTREAM_CLOSED),
        ("/cut", Ended.UPSTREAM_CLOSED),
        ("/hangs", Ended.TIMEOUT),
    ],
)
def test_a_failure_is_recorded_and_replayed_as_the_same_failure(
    library: str, path: str, ended: Ended, tmp_path: Path
) -> None:
    tape = tmp_path / "x.tape"

    async def by_aiohttp(url: str) -> None:
        timeout = aiohttp.ClientTimeout(sock_read=0.5)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.post(url, json=ask("x")) as response:
            await response.read()

    calls: dict[str, tuple[Any, Any]] = {
        "httpx": (lambda url: httpx.post(url, json=ask("x"), timeout=0.5), httpx.TransportError),
        "requests": (lambda url: requests.post(url, json=ask("x"), timeout=0.5), requests.exceptions.RequestException),
        "aiohttp": (lambda url: asyncio.run(by_aiohttp(url)), aiohttp.ClientError),
    }
    call, error = calls[library]
    with Upstream() as upstream, wiretape.record(tape), pytest.raises(error) as live:
        call(upstream.url + path)
    recorded = only(tape)
    if (library, path) == ("aiohttp", "/hangs"):
        ended = Ended.CLIENT_CLOSED  # what its connection shows of a time-out: the client hung up
    assert recorded.ended is ended
    with wiretape.replay(tape), pytest.raises(error) as replayed:
        call(upstream.url + path)
    if ended is not Ended.CLIENT_CLOSED and library != "aiohttp":
        assert type(replayed.value) in (type(live.value), httpx.RemoteProtocolError)


@pytest.mark.parametrize("library", ["httpx", "requests", "aiohttp"])
def test_a_host_that_cannot_be_reached_is_recorded_with_its_request(library: str, tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"

    async def by_aiohttp(url: str) -> None:
        async with aiohttp.ClientSession() as session, session.post(url, json=ask("x")):
            pass

    calls: dict[str, tuple[Any, Any]] = {
        "httpx": (lambda url: httpx.post(url, json=ask("x")), httpx.ConnectError),
        "requests": (lambda url: requests.post(url, json=ask("x")), requests.exceptions.ConnectionError),
        "aiohttp": (lambda url: asyncio.run(by_aiohttp(url)), aiohttp.ClientOSError),
    }
    call, error = calls[library]
    with Upstream() as upstream:
        pass  # its port is free again
    with wiretape.record(tape), pytest.raises(error):
        call(f"{upstream.url}/v1/chat/completions")
    recorded = only(tape)
    assert (recorded.response, recorded.ended) == (None, Ended.UPSTREAM_UNREACHABLE)
    assert recorded.request.body is not None
    assert recorded.request.body.value == ask("x")  # type: ignore[union-attr]
    with wiretape.replay(tape), pytest.raises(error):
        call(f"{upstream.url}/v1/chat/completions")


@pytest.mark.parametrize("library", ["httpx", "requests", "aiohttp"])
def test_a_stream_that_the_program_leaves_is_marked_so(library: str, tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"

    def by_httpx(url: str) -> bytes:
        with httpx.stream("POST", url, json=ask("x")) as response:
            return next(response.iter_raw())

    def by_requests(url: str) -> bytes:
        with requests.post(url, json=ask("x"), stream=True) as response:
            return next(response.iter_content(None))

    async def by_aiohttp(url: str) -> bytes:
        async with aiohttp.ClientSession() as session, session.post(url, json=ask("x")) as response:
            return await response.content.readany()

    calls: dict[str, Any] = {
        "httpx": by_httpx,
        "requests": by_requests,
        "aiohttp": lambda url: asyncio.run(by_aiohttp(url)),
    }
    with Upstream() as upstream, wiretape.record(tape):
        assert calls[library](f"{upstream.url}/held") == CHAT_EVENTS[0]
    assert answers(tape) == [(200, CHAT_EVENTS[0], Ended.CLIENT_CLOSED)]
    with wiretape.replay(tape):
        assert calls[library](f"{upstream.url}/held") == CHAT_EVENTS[0]


def test_openai_s_stream_counts_as_complete_although_it_stops_at_done(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"

    def run(url: str) -> str:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-x") as client:
            chunks = client.chat.completions.create(model="scripted-1", messages=[user("hi")], stream=True)
            return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    with Upstream() as upstream, wiretape.record(tape):
        assert run(upstream.url) == "It is sunny."
    assert answers(tape) == [(200, b"".join(CHAT_EVENTS), Ended.COMPLETE)]
    with wiretape.replay(tape):
        assert run(upstream.url) == "It is sunny."


def test_two_identical_requests_get_both_answers_in_order_from_any_thread() -> None:
    tape = taped(*(exchange(n, chat(user("poll")), reply(str(n)), url=OPENAI) for n in (1, 2, 3)))
    got: list[str] = []

    def poll() -> None:
        answer = httpx.post(OPENAI, json=chat(user("poll"))).json()
        got.append(answer["choices"][0]["message"]["content"])

    with wiretape.replay(tape):
        poll()
        thread = threading.Thread(target=poll)
        thread.start()
        thread.join()
        with ThreadPoolExecutor() as pool:
            pool.submit(poll).result()
    assert got == ["1", "2", "3"]


def test_concurrent_agents_each_get_their_own_answers() -> None:
    """Recorded in one order of completion, asked for in others."""
    names = [f"agent {n}" for n in range(12)]
    calls = [(name, step) for step in range(3) for name in reversed(names)]
    tape = taped(
        *(
            exchange(n, chat(user(name), user(f"step {step}")), reply(f"{name} {step}"), url=OPENAI)
            for n, (name, step) in enumerate(calls, 1)
        )
    )

    async def agent(client: Any, name: str) -> list[str]:
        got = []
        for step in range(3):
            await asyncio.sleep(hash((name, step)) % 7 / 1000)
            response = await client.post(OPENAI, json=chat(user(name), user(f"step {step}")))
            got.append(response.json()["choices"][0]["message"]["content"])
        return got

    async def run() -> list[list[str]]:
        async with httpx2.AsyncClient() as client:
            return await asyncio.gather(*(agent(client, name) for name in names))

    with wiretape.replay(tape):
        assert asyncio.run(run()) == [[f"{name} {step}" for step in range(3)] for name in names]


def test_calls_in_other_threads_are_recorded(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    with Upstream() as upstream, wiretape.record(tape), ThreadPoolExecutor(8) as pool:
        url = f"{upstream.url}/v1/chat/completions"
        list(pool.map(lambda n: httpx.post(url, json=ask(f"call {n}")), range(16)))
    recorded = read_tape(tape).exchanges
    assert sorted(x.request.body.value["messages"][0]["content"] for x in recorded) == sorted(  # type: ignore[union-attr]
        f"call {n}" for n in range(16)
    )
    assert {x.ended for x in recorded} == {Ended.COMPLETE}


def test_the_inner_context_wins_and_the_outer_one_continues_after_it() -> None:
    one, two = (taped(exchange(1, chat(user("hi")), reply(text), url=OPENAI)) for text in ("outer", "inner"))

    def ask_once() -> str:
        content = httpx.post(OPENAI, json=chat(user("hi"))).json()["choices"][0]["message"]["content"]
        return str(content)

    with wiretape.replay(one):
        with wiretape.replay(two):
            assert ask_once() == "inner"
        assert ask_once() == "outer"


def test_two_tapes_at_once_in_different_tasks_each_answer_their_own() -> None:
    async def run(text: str) -> str:
        async with wiretape.replay(taped(exchange(1, chat(user("hi")), reply(text), url=OPENAI))):
            await asyncio.sleep(0.05)
            async with httpx.AsyncClient() as client:
                response = await asyncio.create_task(client.post(OPENAI, json=chat(user("hi"))))
            await asyncio.sleep(0.05)
            return str(response.json()["choices"][0]["message"]["content"])

    async def both() -> list[str]:
        return await asyncio.gather(run("one"), run("two"))

    assert asyncio.run(both()) == ["one", "two"]


def test_a_thread_that_may_belong_to_either_of_two_tapes_is_refused() -> None:
    tape = taped(exchange(1, chat(user("hi")), reply("one"), url=OPENAI))
    said: list[BaseException] = []

    both_open = threading.Event()

    def ask_once() -> None:
        both_open.wait()
        try:
            httpx.post(OPENAI, json=chat(user("hi")))
        except BaseException as error:
            said.append(error)

    thread = threading.Thread(target=ask_once)  # in neither of them
    thread.start()
    one, other = (contextvars.copy_context() for _ in range(2))
    first, second = wiretape.replay(tape), wiretape.replay(tape)
    one.run(first.__enter__), other.run(second.__enter__)
    both_open.set()
    thread.join()
    one.run(first.__exit__, None, None, None), other.run(second.__exit__, None, None, None)
    assert "the replay of hand.tape and the replay of hand.tape are open at the same time" in str(said[0])


def test_each_call_of_a_decorated_function_is_a_separate_run() -> None:
    tape = taped(exchange(1, chat(user("hi")), reply("one"), url=OPENAI))

    @wiretape.replay(tape)
    def run(text: str) -> int:
        return httpx.post(OPENAI, json=chat(user(text))).status_code

    @wiretape.replay(tape)
    async def run_async() -> int:
        async with httpx.AsyncClient() as client:
            return (await client.post(OPENAI, json=chat(user("hi")))).status_code

    assert [run("hi"), run("hi"), asyncio.run(run_async())] == [200, 200, 200]
    with pytest.raises(MissError):
        run("other")
    with pytest.raises(UsageError, match="is a generator"):

        @wiretape.replay(tape)
        def generator() -> Iterator[int]:
            yield 1


def test_nothing_is_patched_outside_and_other_patches_survive() -> None:
    before = httpx.HTTPTransport.__dict__["handle_request"]
    with wiretape.replay(taped(exchange(1, chat(user("hi")), reply("one"), url=OPENAI))):
        assert httpx.HTTPTransport.__dict__["handle_request"] is not before
    assert httpx.HTTPTransport.__dict__["handle_request"] is before


def test_a_custom_transport_over_the_network_one_is_inside_and_a_mock_is_left_alone() -> None:
    class Signing(httpx.HTTPTransport):  # type: ignore[name-defined,misc]
        def handle_request(self, request: Any) -> Any:
            request.headers["x-signed"] = "yes"
            return super().handle_request(request)

    tape = taped(exchange(1, chat(user("hi")), reply("one"), url=OPENAI))
    with wiretape.replay(tape) as ctx:
        with httpx.Client(mounts={"https://": Signing()}) as client:
            assert client.post(OPENAI, json=chat(user("hi"))).status_code == 200
        with httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(418))) as client:
            assert client.post(OPENAI, json=chat(user("hi"))).status_code == 418
    assert len(ctx.report.played) == 1


def test_allowed_hosts_reach_their_server_and_are_listed() -> None:
    tape = taped(exchange(1, chat(user("hi")), reply("one"), url=OPENAI))
    with Upstream() as upstream, wiretape.replay(tape, pass_hosts=["127.0.0.1"]) as ctx:
        assert httpx.post(f"{upstream.url}/v1/chat/completions", json=ask("x")).json() == CHAT_ANSWER
        assert requests.post(f"{upstream.url}/v1/chat/completions", json=ask("x")).json() == CHAT_ANSWER
    assert ctx.report.passed == {f"127.0.0.1:{upstream.port}": 2}


def test_a_pooled_connection_from_before_is_not_used_by_a_replay() -> None:
    """Replay fails closed: nothing reaches the server, whatever connection is still open."""
    tape = taped(exchange(1, chat(user("hi")), reply("one"), url=OPENAI))

    async def run(upstream: Upstream) -> int:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{upstream.url}/free") as response:
                await response.read()
            with wiretape.replay(tape):
                async with session.get(f"{upstream.url}/free") as response:
                    return response.status

    with Upstream() as upstream:
        with requests.Session() as session, httpx.Client() as client:
            session.get(f"{upstream.url}/free")
            client.get(f"{upstream.url}/free")
            with wiretape.replay(tape):
                assert session.get(f"{upstream.url}/free").status_code == 404
                assert client.get(f"{upstream.url}/free").status_code == 404
        assert asyncio.run(run(upstream)) == 404
        assert len(upstream.seen) == 3


def test_a_key_is_there_while_a_replay_is_open_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with wiretape.replay(taped(exchange(1, chat(user("hi")), reply("one"), url=OPENAI))):
        assert os.environ["OPENAI_API_KEY"]
    assert "OPENAI_API_KEY" not in os.environ


def test_recording_never_harms_the_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wiretape.tape.recording.recorder import Recorder

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("recorder is broken")

    for event in ("begin", "request_data", "response", "response_data", "end"):
        with monkeypatch.context() as patch, Upstream() as upstream:
            url = f"{upstream.url}/v1/chat/completions"
            with wiretape.record(tmp_path / f"{event}.tape"):
                patch.setattr(Recorder, event, fails)
                assert httpx.post(url, json=ask("x")).json() == CHAT_ANSWER
                assert requests.post(url, json=ask("x")).json() == CHAT_ANSWER
                patch.undo()


def test_an_existing_tape_is_kept_unless_forced(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    with Upstream() as upstream:
        url = f"{upstream.url}/v1/chat/completions"
        with wiretape.record(tape):
            httpx.post(url, json=ask("one"))
        with pytest.raises(UsageError, match="append=True continues it, force=True replaces it"):
            wiretape.record(tape).__enter__()
        with wiretape.record(tape, append=True):
            httpx.post(url, json=ask("two"))
        assert len(answers(tape)) == 2
        with wiretape.record(tape, force=True):
            httpx.post(url, json=ask("three"))
        assert len(answers(tape)) == 1


def test_force_without_a_new_recording_keeps_the_old_tape(tmp_path: Path, capsys: Any) -> None:
    tape = tmp_path / "x.tape"
    with Upstream() as upstream, wiretape.record(tape):
        httpx.post(f"{upstream.url}/v1/chat/completions", json=ask("one"))
    before = tape.read_bytes()
    with wiretape.record(tape, force=True):
        pass
    assert tape.read_bytes() == before
    assert "was not replaced, and is unchanged" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [tape]


def test_other_hosts_bypass_the_recorder_and_are_listed(tmp_path: Path, capsys: Any) -> None:
    with (
        wiretape.record(tmp_path / "x.tape") as ctx,
        httpx.Client(timeout=2) as client,
        pytest.raises(httpx.ConnectError),
    ):
        client.get("http://no-such-host.invalid/")
    assert ctx.summary is not None
    assert (ctx.summary.exchanges, ctx.summary.bypassed) == (0, ("no-such-host.invalid",))
    assert "nothing was recorded (not recorded: no-such-host.invalid)" in capsys.readouterr().err


@pytest.mark.slow
def test_a_library_that_is_imported_inside_is_patched_then(tmp_path: Path) -> None:
    program = """
        import sys, wiretape
        assert not {"httpx", "pydantic", "wiretape.adapters"} & set(sys.modules)  # importing wiretape is cheap
        with wiretape.replay("captures/weather-one-tool.tape", on_miss="raise") as ctx:
            assert not {"httpx2", "aiohttp", "urllib3"} & set(sys.modules)
            import httpx2
            try:
                httpx2.post("https://api.openai.com/v1/chat/completions", json={"model": "x", "messages": []})
            except wiretape.MissInterrupt:
                print("missed")
            import requests
            print(requests.get("https://example.com/").status_code)
            ctx.session.ledger.outcomes.clear()
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["missed", "404"], done.stderr


def test_an_old_tape_causes_a_warning_or_an_error(tmp_path: Path, capsys: Any) -> None:
    tape = tmp_path / "x.tape"
    tape.write_text('{"wiretape": 1, "started": "2026-01-01T00:00:00Z", "recorder": "wiretape 0"}\n')
    with wiretape.replay(tape, max_age="1h"):
        pass
    said = capsys.readouterr().err
    assert f"{tape} was recorded " in said
    assert f'to record it again: run this once in wiretape.record("{tape}", force=True)' in said
    with pytest.raises(TapeTooOld, match="2026-01-01"), wiretape.replay(tape, max_age=1, max_age_action="fail"):
        pass
    with pytest.raises(UsageError, match="not an age"):
        wiretape.replay(tape, max_age="soon")
    with wiretape.replay(tape, max_age=100_000):
        pass
    assert capsys.readouterr().err == ""
