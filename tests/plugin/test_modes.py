"""`--wiretape-mode`: where answers come from, and what becomes of the tape."""

from __future__ import annotations

import threading

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

ONE = """
    @pytest.mark.wiretape
    def test_one():
        assert "to: hello" in said("hello")
"""


def test_by_default_nothing_is_asked_live_and_a_missing_tape_says_how_to_record_it(
    project: Project, model: CountingModel
) -> None:
    project.write(ONE)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "the tape captures/test_it/test_one.tape does not exist",
            "no call on captures/test_it/test_one.tape answers POST /v1/chat/completions",
            "*to record it: pytest test_it.py::test_one --wiretape-mode=once",
        ]
    )
    assert model.asked == []
    assert project.tapes() == []


def test_without_a_tape_and_without_a_key_the_tape_is_what_is_missing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    project.write("""
        @pytest.mark.wiretape
        def test_one():
            ask = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            openai.OpenAI().chat.completions.create(**ask)
    """)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the tape captures/test_it/test_one.tape does not exist"])
    result.stdout.no_fnmatch_line("*Missing credentials*")


def test_once_records_where_there_is_no_tape_and_then_replays(project: Project, model: CountingModel) -> None:
    project.write(ONE)
    first = project.run("--wiretape-mode=once")
    first.assert_outcomes(passed=1)
    first.stdout.fnmatch_lines(["recorded captures/test_it/test_one.tape (1 exchange)"])
    assert project.tapes() == ["test_it/test_one.tape"]
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["hello"]


def test_the_configuration_gives_the_mode_and_the_directory(project: Project, model: CountingModel) -> None:
    project.configure("wiretape_mode = once", "wiretape_dir = recorded/tapes")
    project.write(ONE)
    project.run().assert_outcomes(passed=1)
    assert (project.root / "recorded/tapes/test_it/test_one.tape").is_file()
    project.run("--wiretape-mode=none").assert_outcomes(passed=1)
    assert model.asked == ["hello"]


def test_a_mode_that_does_not_exist_is_named(project: Project) -> None:
    project.configure("wiretape_mode = twice")
    project.write(ONE)
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*wiretape_mode is 'twice'*none, once, new, update, all, rewrite*"])


TWO = """
    @pytest.mark.wiretape
    def test_one():
        print("heard", said("hello"))
        print("heard", said("goodbye"))
"""


def test_new_replays_what_is_there_and_appends_what_is_missing(project: Project, model: CountingModel) -> None:
    project.write(ONE)
    project.run("--wiretape-mode=new").assert_outcomes(passed=1)
    project.write(TWO)
    result = project.run("--wiretape-mode=new", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*heard answer 1 to: hello", "heard answer 2 to: goodbye"])
    assert model.asked == ["hello", "goodbye"]
    assert project.answers("test_it/test_one") == ["answer 1 to: hello", "answer 2 to: goodbye"]
    project.run().assert_outcomes(passed=1)
    project.run("--wiretape-mode=new").assert_outcomes(passed=1)
    assert model.asked == ["hello", "goodbye"]


def test_new_streams_to_programs_that_are_async(project: Project, model: CountingModel) -> None:
    project.write("""
        @pytest.mark.wiretape
        def test_one():
            import asyncio
            async def run():
                client = openai.AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="sk-not-a-secret")
                async with client:
                    stream = await client.chat.completions.create(
                        model="m", messages=[{"role": "user", "content": "hi"}], stream=True
                    )
                    return "".join([c.choices[0].delta.content or "" async for c in stream])
            assert asyncio.run(run()) == "answer 1 to: hi "
    """)
    project.tape("test_it/test_one").parent.mkdir(parents=True)
    header = '{"wiretape": 1, "started": "2026-01-01T00:00:00Z", "recorder": "wiretape 0", "redacted": []}\n'
    project.tape("test_it/test_one").write_text(header)
    project.run("--wiretape-mode=new").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["hi"]


GATHERED = {
    "httpx": """
        @pytest.mark.wiretape
        def test_one():
            import asyncio
            async def said(client, text):
                body = {"model": "counting-1", "messages": [{"role": "user", "content": text}]}
                answer = await client.post(os.environ["MODEL_URL"] + "/chat/completions", json=body)
                return answer.json()["choices"][0]["message"]["content"]
            async def run():
                async with httpx.AsyncClient(timeout=40) as client:
                    return await asyncio.gather(said(client, "left"), said(client, "right"))
            assert [one.split()[-1] for one in asyncio.run(run())] == ["left", "right"]
    """,
    "aiohttp": """
        @pytest.mark.wiretape
        def test_one():
            import asyncio
            import aiohttp
            async def said(client, text):
                body = {"model": "counting-1", "messages": [{"role": "user", "content": text}]}
                async with client.post(os.environ["MODEL_URL"] + "/chat/completions", json=body) as answer:
                    return (await answer.json())["choices"][0]["message"]["content"]
            async def run():
                async with aiohttp.ClientSession() as client:
                    return await asyncio.gather(said(client, "left"), said(client, "right"))
            assert [one.split()[-1] for one in asyncio.run(run())] == ["left", "right"]
    """,
}


@pytest.mark.parametrize("library", GATHERED)
def test_new_calls_live_while_the_program_goes_on(library: str, project: Project, model: CountingModel) -> None:
    """The model answers neither call before both have come: a call that held up the event loop would wait for ever."""
    pytest.importorskip(library)
    project.write(ONE)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.write(GATHERED[library])
    model.together = threading.Barrier(2)
    project.run("--wiretape-mode=new").assert_outcomes(passed=1)
    model.together = None
    assert sorted(model.asked) == ["hello", "left", "right"]
    project.run().assert_outcomes(passed=1)
    assert len(model.asked) == 3


def test_all_and_rewrite_ask_everything_anew(project: Project, model: CountingModel) -> None:
    project.write(ONE)
    for number, mode in enumerate(("once", "all", "rewrite", "all"), 1):
        project.run(f"--wiretape-mode={mode}").assert_outcomes(passed=1)
        assert project.answers("test_it/test_one") == [f"answer {number} to: hello"]
    assert project.tapes() == ["test_it/test_one.tape"]


def test_all_keeps_what_was_not_asked_again_and_rewrite_drops_it(project: Project) -> None:
    project.write(TWO)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.write(ONE)
    project.run("--wiretape-mode=all").assert_outcomes(passed=1)
    assert project.answers("test_it/test_one") == ["answer 2 to: goodbye", "answer 3 to: hello"]
    project.run("--wiretape-mode=rewrite").assert_outcomes(passed=1)
    assert project.answers("test_it/test_one") == ["answer 4 to: hello"]


@pytest.mark.parametrize("mode", ["new", "all", "rewrite"])
def test_an_old_tape_is_replaced_only_when_the_test_passed(project: Project, mode: str) -> None:
    project.write(ONE)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    before = project.tape("test_it/test_one").read_bytes()
    project.write("""
        @pytest.mark.wiretape
        def test_one():
            assert said("something else") == "never"
    """)
    result = project.run(f"--wiretape-mode={mode}")
    result.assert_outcomes(failed=1)
    assert project.tape("test_it/test_one").read_bytes() == before
    assert project.tapes() == ["test_it/test_one.tape"]
    aside = ".pytest_cache/d/wiretape/test_it/test_one.tape"
    result.stdout.fnmatch_lines(
        [f"*test_one: the test did not pass: captures/test_it/test_one.tape is unchanged; the recording: {aside}"]
    )
    assert "something else" in (project.root / aside).read_text()


@pytest.mark.parametrize(
    "ending",
    [
        "pytest.skip('not today')",
        "raise KeyError('odd')",
        "request.addfinalizer(lambda: 1 / 0)",
        "pytest.fail('no')",
    ],
)
def test_nothing_but_a_pass_makes_a_tape(project: Project, ending: str) -> None:
    project.write(f"""
        @pytest.mark.wiretape
        def test_one(request):
            said("hello")
            {ending}
    """)
    project.run("--wiretape-mode=once", "-p", "no:cacheprovider")
    assert project.tapes() == []


@pytest.mark.parametrize("how", ["raise KeyboardInterrupt", "pytest.exit('enough')"])
def test_an_interrupted_run_leaves_the_tape_and_nothing_beside_it(project: Project, how: str) -> None:
    project.write(ONE)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    before = project.tape("test_it/test_one").read_bytes()
    project.write(f"""
        @pytest.mark.wiretape
        def test_one():
            said("something else")
            {how}
    """)
    result = project.pytester.runpytest_inprocess("-p", "no:xdist", "--wiretape-mode=rewrite", no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert project.tape("test_it/test_one").read_bytes() == before
    assert project.tapes() == ["test_it/test_one.tape"]
    aside = ".pytest_cache/d/wiretape/test_it/test_one.tape"
    result.stdout.fnmatch_lines(
        [f"*test_one: the test did not pass: captures/test_it/test_one.tape is unchanged; the recording: {aside}"]
    )
    assert "something else" in (project.root / aside).read_text()


def test_tapes_that_some_file_systems_take_for_one_are_named(project: Project) -> None:
    project.write("""
        @pytest.mark.wiretape
        @pytest.mark.parametrize("word", ["yes", "YES"])
        def test_one(word):
            said(word)
    """)
    result = project.run("--wiretape-mode=once")
    if len(project.tapes()) < 2:
        pytest.skip("this file system takes them for one")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_one?YES?: test_one?YES?.tape and test_one?yes?.tape differ only in case: *"])


def test_a_tape_that_the_test_itself_opens_is_kept(project: Project, model: CountingModel) -> None:
    project.write("""
        def test_one(request):
            wiretape = request.getfixturevalue("wiretape")
            said("hello")
            assert wiretape.stats.calls == 1
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    assert project.tapes() == ["test_it/test_one.tape"]
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["hello"]
    project.write("""
        def test_one(request):
            request.getfixturevalue("wiretape")
            ask("something else")
    """)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*live      something else"])


def test_a_test_that_asks_nothing_needs_no_tape_and_makes_none(project: Project) -> None:
    project.write("""
        pytestmark = pytest.mark.wiretape
        def test_one():
            pass
    """)
    for mode in ("none", "once", "new", "all", "rewrite"):
        project.run(f"--wiretape-mode={mode}").assert_outcomes(passed=1)
    assert project.tapes() == []


def test_tests_that_share_a_tape_do_not_undo_one_another(project: Project, model: CountingModel) -> None:
    project.write("""
        @pytest.mark.wiretape("shared")
        class TestBoth:
            def test_one(self):
                said("hello")
            @pytest.mark.parametrize("word", ["a", "b"])
            def test_two(self, word):
                said(word)
    """)
    for mode in ("once", "rewrite"):
        project.run(f"--wiretape-mode={mode}").assert_outcomes(passed=3)
        assert project.tapes() == ["shared.tape"]
        project.run().assert_outcomes(passed=3)
    assert model.asked == ["hello", "a", "b"] * 2
    assert len(project.answers("shared")) == 3


def test_compressed_tapes_are_recorded_and_replayed(project: Project, model: CountingModel) -> None:
    project.write("""
        @pytest.mark.wiretape("small.tape.zst")
        def test_one():
            said("hello")
    """)
    for mode in ("once", "none", "all", "new"):
        project.run(f"--wiretape-mode={mode}").assert_outcomes(passed=1)
    assert project.tapes() == ["small.tape.zst"]
    assert model.asked == ["hello", "hello"]


def test_a_secret_never_reaches_the_tape(project: Project) -> None:
    project.write("""
        @pytest.mark.wiretape
        def test_one():
            url = os.environ["MODEL_URL"] + "/chat/completions"
            body = {"model": "m", "messages": [{"role": "user", "content": "key sk-live-0123456789abcdef0123"}]}
            httpx.post(url, json=body, headers={"authorization": "Bearer sk-live-0123456789abcdef0123"})
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    assert "0123456789abcdef" not in project.tape("test_it/test_one").read_text()
    project.run().assert_outcomes(passed=1)


def test_a_damaged_tape_says_how_to_make_a_good_one_and_a_cut_one_what_it_lacks(
    project: Project, model: CountingModel
) -> None:
    project.write(TWO)
    project.tape("test_it/test_one").parent.mkdir(parents=True)
    project.tape("test_it/test_one").write_text("no tape at all\n")
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "captures/test_it/test_one.tape*",
            "  to record it again: pytest test_it.py::test_one --wiretape-mode=rewrite",
        ],
        consecutive=True,
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    project.run("--wiretape-mode=rewrite").assert_outcomes(passed=1)
    text = project.tape("test_it/test_one").read_text()
    project.tape("test_it/test_one").write_text(text[:-100])
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E * the tape is incomplete: captures/test_it/test_one.tape:*: the last document is cut off*",
            "E *   to fix it: pytest test_it.py::test_one --wiretape-mode=update",
        ]
    )
    result = project.run("--wiretape-mode=update")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["updated captures/test_it/test_one.tape: 1 exchange called live, 1 kept, 0 dropped"], consecutive=True
    )
    assert model.asked == ["hello", "goodbye", "goodbye"]
    assert project.tapes() == ["test_it/test_one.tape"]


def test_a_place_that_cannot_be_written_is_named_with_what_to_do(project: Project) -> None:
    project.configure("wiretape_dir = occupied")
    (project.root / "occupied").write_text("a file")
    project.write(ONE)
    result = project.run("--wiretape-mode=once")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "occupied/test_it/test_one.tape cannot be recorded: * (*occupied*)",
            "  the recording is written to the same directory: make it writable, or name another",
            "  (wiretape_dir in the configuration of pytest)",
        ],
        consecutive=True,
    )


def test_a_gateway_that_is_not_recorded_is_named_where_that_leaves_no_tape(
    project: Project, model: CountingModel
) -> None:
    project.write("""
        @pytest.mark.wiretape
        def test_one(monkeypatch):
            import socket
            found = socket.getaddrinfo
            monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **named: found("127.0.0.1", *more, **named))
            monkeypatch.setenv("MODEL_URL", os.environ["MODEL_URL"].replace("127.0.0.1", "llm.corp.example"))
            said("hello")
    """)
    result = project.run("--wiretape-mode=once")
    result.assert_outcomes(passed=1)
    assert model.asked == ["hello"]
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_one: nothing was recorded; the test called llm.corp.example",
            '  if models answer there: @pytest.mark.wiretape(hosts=*"llm.corp.example"?), or hosts in ?tool.wiretape?',
        ],
        consecutive=True,
    )


def test_a_rewritten_tape_that_is_gone_by_the_end_of_the_run_does_no_harm(project: Project) -> None:
    project.write("""
        @pytest.mark.wiretape
        def test_one():
            said("one"), said("two")
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.write("""
        @pytest.fixture(scope="session", autouse=True)
        def clean():
            yield
            os.unlink("captures/test_it/test_one.tape")

        @pytest.mark.wiretape
        def test_one():
            said("one")

        def test_two():
            pass
    """)
    result = project.run("--wiretape-mode=rewrite")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["recorded captures/test_it/test_one.tape (1 exchange)"])
