"""What a test can ask of its tape, and the ways in which tests are written."""

from __future__ import annotations

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

pytestmark = pytest.mark.slow


def test_stats_are_of_what_this_test_has_asked_in_every_mode(project: Project, model: CountingModel) -> None:
    project.write("""
        def test_one(wiretape):
            assert wiretape.stats.calls == 0
            history = [{"role": "user", "content": "hello"}]
            for text in ("more", "and more"):
                answer = ask("", messages=history).json()["choices"][0]["message"]
                history += [answer, {"role": "user", "content": text}]
            assert wiretape.stats.calls == 2
            assert [turn.calls for turn in wiretape.turns] == [1, 1]
            assert wiretape.turns[0].user == "hello"
            assert wiretape.stats.turns[0].usage.input == 11
            assert wiretape.tape.name == "test_one.tape"
            assert wiretape.report.missed == ()
    """)
    for mode in ("once", "none", "new", "all", "rewrite"):
        project.run(f"--wiretape-mode={mode}").assert_outcomes(passed=1)
    assert len(model.asked) == 6


def test_lint_finds_what_is_wrong_in_this_test(project: Project) -> None:
    project.write("""
        def test_one(wiretape):
            said("hello")
            assert wiretape.lint() == []
            lost = {"role": "tool", "tool_call_id": "call_7", "content": "18 degrees"}
            ask("", messages=[{"role": "user", "content": "and now?"}, lost])
            [finding] = wiretape.lint()
            assert (finding.rule, finding.call, finding.path) == ("WT002", 2, "messages[1].content")
            assert wiretape.lint(ignore=["WT002"]) == wiretape.lint(select=["WT003"]) == []
    """)
    for mode in ("once", "none"):
        project.run(f"--wiretape-mode={mode}").assert_outcomes(passed=1)


def test_a_shared_tape_s_stats_are_this_test_s_part(project: Project) -> None:
    project.write("""
        @pytest.mark.wiretape("shared")
        @pytest.mark.parametrize("words", ["a", "bc"])
        def test_one(wiretape, words):
            for word in words:
                said(word)
            assert wiretape.stats.calls == len(words)
    """)
    project.run("--wiretape-mode=once", "-k", "bc").assert_outcomes(passed=1, deselected=1)
    project.run("--wiretape-mode=new").assert_outcomes(passed=2)
    project.run().assert_outcomes(passed=2)


def test_clients_that_were_made_before_the_test_are_caught(project: Project, model: CountingModel) -> None:
    project.write("""
        @pytest.fixture(scope="session")
        def client():
            with openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="x") as client:
                yield client
        @pytest.fixture
        def greeting(client):
            return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        @pytest.mark.wiretape
        @pytest.mark.parametrize("word", ["a", "b"])
        def test_one(greeting, client, word):
            assert "to: hi" in greeting.choices[0].message.content
            stream = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": word}], stream=True
            )
            assert f"to: {word}" in "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=2)
    assert project.tapes() == ["test_it/test_one[a].tape", "test_it/test_one[b].tape"]
    assert project.answers("test_it/test_one[b]") == ["answer 3 to: hi", "answer 4 to: b "]
    project.run().assert_outcomes(passed=2)
    assert len(model.asked) == 4


@pytest.mark.parametrize("library", ["asyncio", "trio"])
def test_async_tests(project: Project, model: CountingModel, library: str) -> None:
    if library == "trio":
        pytest.importorskip("trio", reason="trio is not installed")
    project.write(f"""
        @pytest.fixture
        def anyio_backend():
            return {library!r}
        @pytest.mark.anyio
        @pytest.mark.wiretape
        async def test_one(wiretape):
            async with openai.AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="x") as client:
                answer = await client.chat.completions.create(
                    model="m", messages=[{{"role": "user", "content": "hi"}}]
                )
            assert "to: hi" in answer.choices[0].message.content
            assert wiretape.stats.calls == 1
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["hi"]


def test_methods_modules_and_testcases(project: Project, model: CountingModel) -> None:
    project.write(
        """
        import unittest
        pytestmark = pytest.mark.wiretape(strict=True)
        def test_one():
            said("a")
        class TestIt:
            def test_one(self):
                said("b")
            class TestInner:
                def test_one(self):
                    said("c")
        class OldStyle(unittest.TestCase):
            def test_one(self):
                said("d")
    """,
        "tests/unit/test_it.py",
    )
    project.run("--wiretape-mode=once").assert_outcomes(passed=4)
    assert project.tapes() == [
        "unit/test_it/OldStyle.test_one.tape",
        "unit/test_it/TestIt.TestInner.test_one.tape",
        "unit/test_it/TestIt.test_one.tape",
        "unit/test_it/test_one.tape",
    ]
    project.run().assert_outcomes(passed=4)
    assert model.asked == ["a", "b", "c", "d"]


def test_a_testcase_that_swallows_a_miss_fails(project: Project) -> None:
    project.write("""
        import unittest
        @pytest.mark.wiretape
        class OldStyle(unittest.TestCase):
            def test_one(self):
                ask("hello")
    """)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no call on captures/test_it/OldStyle.test_one.tape answers*"])


CHILD = """
    import subprocess, sys
    AGENT = [
        "import openai",
        "client = openai.OpenAI()",
        "answer = client.chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'WORD'}])",
        "print(answer.choices[0].message.content)",
    ]
    @pytest.mark.wiretape
    def test_one(wiretape):
        command = [sys.executable, "-c", "; ".join(AGENT)]
        child = subprocess.run(command, env=wiretape.environ(), capture_output=True, text=True, timeout=60)
        assert "to: hello" in child.stdout, child.stderr
        assert wiretape.stats.calls == 1
"""


@pytest.mark.proxy
def test_child_processes_are_recorded_and_replayed(
    project: Project, model: CountingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mitmproxy", reason="mitmproxy is not installed: it needs Python 3.12 and the extra `proxy`")
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    project.write(CHILD.replace("WORD", "hello"))
    project.run_apart("--wiretape-mode=once").assert_outcomes(passed=1)
    project.run_apart().assert_outcomes(passed=1)
    assert model.asked == ["hello"]
    monkeypatch.delenv("OPENAI_API_KEY")
    project.write(CHILD.replace("WORD", "hullo"))
    result = project.run_apart()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no call on captures/test_it/test_one.tape answers*", "*live      hullo"])
    assert model.asked == ["hello"]


@pytest.mark.proxy
def test_a_child_process_is_answered_from_the_tape_and_what_is_not_on_it_is_recorded(
    project: Project, model: CountingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mitmproxy", reason="mitmproxy is not installed: it needs Python 3.12 and the extra `proxy`")
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    project.write(CHILD.replace("WORD", "hello"))
    project.run_apart("--wiretape-mode=once").assert_outcomes(passed=1)
    asks_twice = CHILD.replace(
        "print(answer",
        "print(client.chat.completions.create(model='m', messages=[{'role': "
        "'user', 'content': 'again'}]).choices[0].message.content, answer",
    ).replace("calls == 1", "calls == 2")
    project.write(asks_twice.replace("WORD", "hello"))
    project.run_apart("--wiretape-mode=new").assert_outcomes(passed=1)
    assert model.asked == ["hello", "again"]
    assert project.answers("test_it/test_one") == ["answer 1 to: hello", "answer 2 to: again"]
    project.run_apart().assert_outcomes(passed=1)
    assert model.asked == ["hello", "again"]


def test_environ_of_a_replay_needs_no_recorder(project: Project, model: CountingModel) -> None:
    project.write("""
        @pytest.mark.wiretape("t")
        def test_one(request):
            said("hello")
            if wiretape := request.getfixturevalue("wiretape"):
                assert wiretape.stats.calls == 1
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.write("""
        @pytest.mark.wiretape("t")
        def test_one(wiretape):
            import http.client, json
            from urllib.parse import urlsplit
            url = urlsplit(wiretape.environ()["OPENAI_BASE_URL"])
            body = {"model": "counting-1", "messages": [{"role": "user", "content": "hello"}]}
            connection = http.client.HTTPConnection(url.hostname, url.port)
            connection.request("POST", url.path + "/chat/completions", json.dumps(body))
            assert b"answer 1 to: hello" in connection.getresponse().read()
            connection.close()
            assert wiretape.stats.calls == 1
            assert wiretape.environ() == wiretape.environ()
    """)
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["hello"]


def test_what_an_assertion_shows_of_the_fixture_says_which_tape_and_what_is_there(project: Project) -> None:
    project.write("""
        def test_one(wiretape):
            assert repr(wiretape) == "<wiretape captures/test_it/test_one.tape, recording>"
            with pytest.raises(IndexError, match="there is no turn 0: the test has made no turn so far"):
                wiretape.turns[0]
            said("hello")
            assert wiretape.turns[0].calls == wiretape.turns[-1].calls == 1
            assert [turn.answer for turn in wiretape.turns] == ["answer 1 to: hello"]
            wiretape.turns[1]
    """)
    result = project.run("--wiretape-mode=once")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E * IndexError: there is no turn 1: the test has made 1 turn so far, counted from 0"])


def test_a_marker_that_cannot_be_meant_fails_its_own_test_alone(project: Project) -> None:
    project.write("""
        @pytest.mark.wiretape("shared")
        def test_one():
            said("hello")
        @pytest.mark.wiretape(3)
        def test_two():
            pass
        @pytest.mark.wiretape(hosts=3)
        def test_three():
            pass
    """)
    result = project.run("--wiretape-mode=once")
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "@pytest.mark.wiretape(3): the name of a tape is a string, such as 'weather'",
            "@pytest.mark.wiretape(hosts=…) takes a list of strings, and got 3",
        ]
    )
