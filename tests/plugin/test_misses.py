"""A miss fails the test, whatever the agent did about it, and says what differs and what to do."""

from __future__ import annotations

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

RECORDED = """
    @pytest.mark.wiretape
    def test_one():
        said("hello")
        said("goodbye")
"""
MISS = [
    "no call on captures/test_it/test_one.tape answers POST /v1/chat/completions",
    "  it was never recorded; the nearest, call 1, differs from its start at messages?0?.content",
    "    recorded  hello",
    "    live      hullo",
    "  sent from test_it.py:*",
    "  if the change is intended: pytest test_it.py::test_one --wiretape-mode=update",
]


@pytest.fixture
def recorded(project: Project, model: CountingModel) -> Project:
    project.write(RECORDED)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    model.asked.clear()
    return project


def test_a_miss_that_the_agent_swallowed_fails_the_test_with_the_difference(
    recorded: Project, model: CountingModel
) -> None:
    recorded.write("""
        @pytest.mark.wiretape
        def test_one():
            try:
                said("hullo")
            except Exception:
                pass
    """)
    result = recorded.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(MISS, consecutive=True)
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*def test_one*")
    assert model.asked == []


def test_an_sdk_neither_retries_a_miss_nor_hides_it(recorded: Project, model: CountingModel) -> None:
    recorded.write("""
        @pytest.mark.wiretape
        def test_one():
            client = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="x", max_retries=5)
            client.chat.completions.create(model="counting-1", messages=[{"role": "user", "content": "hullo"}])
    """)
    result = recorded.run()
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert text.count("no call on captures/test_it/test_one.tape answers") <= 2  # the failure, and the short summary
    assert "BadRequestError" not in text
    assert "Connection error" not in text
    assert model.asked == []


@pytest.mark.parametrize("on_miss", ["answer", "raise"])
def test_a_miss_goes_before_what_came_of_it(recorded: Project, on_miss: str) -> None:
    recorded.write(f"""
        @pytest.mark.wiretape(on_miss={on_miss!r})
        def test_one():
            said("hello")
            try:
                answer = said("hullo")
            except Exception:
                answer = ""
            assert answer, "nothing was said"
    """)
    result = recorded.run()
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "no call on captures/test_it/test_one.tape answers POST /v1/chat/completions" in text
    assert ("the test then failed with AssertionError: nothing was said" in text) is (on_miss == "answer")


def test_a_miss_in_a_fixture_is_told_as_one(recorded: Project) -> None:
    recorded.write("""
        @pytest.fixture
        def greeted():
            return said("hullo")
        @pytest.mark.wiretape
        def test_one(greeted):
            pass
    """)
    result = recorded.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["no call on captures/test_it/test_one.tape answers*"])


def test_a_miss_after_the_test_is_told_too(recorded: Project) -> None:
    recorded.write("""
        @pytest.fixture
        def polite():
            yield
            ask("farewell")
        @pytest.mark.wiretape
        def test_one(polite):
            pass
    """)
    result = recorded.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["no call on captures/test_it/test_one.tape answers*"])


def test_what_a_miss_of_a_changed_prompt_advises_gives_a_tape_without_the_old_call(
    project: Project, model: CountingModel
) -> None:
    test = """
        @pytest.mark.wiretape({}strict=True)
        def test_one():
            said("{}")
    """
    project.write(test.format("", "hello"))
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.write(test.format("", "hullo"))
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  if the change is intended: pytest test_it.py::test_one --wiretape-mode=update"])
    project.run("test_it.py::test_one", "--wiretape-mode=update").assert_outcomes(passed=1)
    assert project.answers("test_it/test_one") == ["answer 2 to: hullo"]
    project.run().assert_outcomes(passed=1)


def test_a_miss_beyond_the_end_of_the_tape_advises_to_record_only_that(recorded: Project, model: CountingModel) -> None:
    recorded.write("""
        @pytest.mark.wiretape(strict=True)
        def test_one():
            said("hello")
            said("goodbye")
            said("one more thing")
    """)
    result = recorded.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  to record it: pytest test_it.py::test_one --wiretape-mode=update"])
    recorded.run("test_it.py::test_one", "--wiretape-mode=update").assert_outcomes(passed=1)
    assert model.asked == ["one more thing"]
    recorded.run().assert_outcomes(passed=1)


def test_several_misses_are_counted(project: Project) -> None:
    project.write("""
        @pytest.mark.wiretape
        def test_one():
            for word in "abcde":
                ask(word)
    """)
    result = project.run()
    result.stdout.fnmatch_lines(["5 requests had no recorded answer", "and 2 more"])


def test_a_call_that_was_played_already_says_how_to_play_it_again(recorded: Project) -> None:
    again = """
        @pytest.mark.wiretape({})
        def test_one():
            said("hello")
            said("hello")
    """
    recorded.write(again.format(""))
    result = recorded.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.wiretape(repeat=True)"])
    recorded.write(again.format("repeat=True"))
    recorded.run().assert_outcomes(passed=1)


def test_the_tier_and_masks_are_the_marker_s(project: Project) -> None:
    test = """
        @pytest.mark.wiretape({})
        def test_one():
            said("build {} is done")
    """
    project.write(test.format("", "red-7"))
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.write(test.format("mask=[r'red-[0-9]+']", "red-8"))
    project.run().assert_outcomes(passed=1)
    project.write(test.format("mask=[r'red-[0-9]+'], tier='exact'", "red-8"))
    project.run().assert_outcomes(failed=1)
    project.write(test.format("tier='exact'", "red-7"))
    project.run().assert_outcomes(passed=1)


def test_drift_passes_and_is_shown_with_v(recorded: Project) -> None:
    recorded.write("""
        @pytest.mark.wiretape
        def test_one():
            said("at 2026-01-01 10:00:00")
    """)
    recorded.run("--wiretape-mode=update").assert_outcomes(passed=1)
    recorded.write("""
        @pytest.mark.wiretape
        def test_one(wiretape):
            said("at 2026-02-03 11:12:13")
            assert [drift.where for drift in wiretape.report.drifted] == ["messages[0].content"]
    """)
    result = recorded.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 test drifted from the recording (-v shows where)"])
    recorded.run("-v").stdout.fnmatch_lines(
        [
            "test_it.py::test_one drifted:",
            "  messages?0?.content in call 1 (masked)",
            "    recorded  at 2026-01-01 10:00:00",
            "    live      at 2026-02-03 11:12:13",
        ]
    )


@pytest.mark.parametrize("how", ["option", "marker", "configuration"])
def test_what_is_recorded_and_not_asked_for_fails_a_strict_test(recorded: Project, how: str) -> None:
    test = """
        @pytest.mark.wiretape(strict={})
        def test_one():
            said("hello")
    """
    plain = test.replace("strict={}", "")
    recorded.write(plain)
    recorded.run().assert_outcomes(passed=1)
    recorded.write(test.format("True") if how == "marker" else plain)
    if how == "configuration":
        recorded.configure("wiretape_strict = true")
    result = recorded.run(*(["--wiretape-strict"] if how == "option" else []))
    result.assert_outcomes(passed=1, errors=1)  # told when its fixtures, too, have asked all they do
    result.stdout.fnmatch_lines(
        ["1 recorded on captures/test_it/test_one.tape and not requested: call 2 (POST /v1/chat/completions)"]
    )
    recorded.write(test.format("False"))
    recorded.run("--wiretape-strict").assert_outcomes(passed=1)
    recorded.write(RECORDED)
    recorded.run("--wiretape-strict").assert_outcomes(passed=1)


def test_a_strict_test_s_fixtures_may_ask_when_it_is_over(project: Project, model: CountingModel) -> None:
    project.write("""
        @pytest.fixture
        def polite():
            yield
            said("goodbye")

        @pytest.mark.wiretape(strict=True)
        def test_one(polite):
            said("hello")
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["hello", "goodbye"]


def test_a_request_that_is_no_model_call_is_answered_404_and_named(recorded: Project, model: CountingModel) -> None:
    recorded.write(
        """
        @pytest.mark.wiretape
        def test_one():
            assert httpx.get("https://news.example/today").status_code == 404
            {}
    """.format("said('hello')")
    )
    result = recorded.run("-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["test_it.py::test_one sent requests that are not on its tape:", "  GET news.example/today: answered 404*"]
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("'a', 'b'", "*takes one name, and got 2*"),
        ("tear='exact'", "*does not know 'tear'; it takes name, tier*"),
        ("tier='rough'", "*there is no tier 'rough'*"),
        ("on_miss='shrug'", "*on_miss is 'shrug'*"),
        ("hosts=[1]", "*hosts=*takes a list of strings*"),
    ],
)
def test_a_marker_that_cannot_be_meant_is_refused(project: Project, arguments: str, said: str) -> None:
    project.write(f"""
        @pytest.mark.wiretape({arguments})
        def test_one():
            pass
    """)
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_miss_names_the_line_that_asked(project: Project) -> None:
    """The person's own line: neither the client's, nor that of whoever started the thread."""
    (project.root / "agent.py").write_text(
        "import os, httpx\n"
        "def greet(name):\n"
        "    url = os.environ['MODEL_URL'] + '/chat/completions'\n"
        "    httpx.post(url, json={'model': 'm', 'messages': [{'role': 'user', 'content': name}]})\n"
        "async def agreet(name):\n"
        "    async with httpx.AsyncClient() as client:\n"
        "        url = os.environ['MODEL_URL'] + '/chat/completions'\n"
        "        await client.post(url, json={'model': 'm', 'messages': [{'role': 'user', 'content': name}]})\n"
    )
    project.write("""
        import asyncio
        import threading
        import agent

        def test_sync(wiretape):
            agent.greet("Ann")
        def test_async(wiretape):
            asyncio.run(agent.agreet("Bob"))
        def test_thread(wiretape):
            thread = threading.Thread(target=agent.greet, args=("Cid",))
            thread.start()
            thread.join()
    """)
    result = project.run("-p", "no:cacheprovider", "--tb=short")
    asked = [line for line in result.stdout.lines if "sent from" in line]
    assert asked == ["  sent from agent.py:4", "  sent from agent.py:8", "  sent from agent.py:4"]


def test_the_short_summary_says_what_differs(recorded: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")  # pytest cuts nothing off
    recorded.write(RECORDED.replace("hello", "hullo"))
    recorded.run().stdout.fnmatch_lines(
        ["FAILED test_it.py::test_one - Failed: messages?0?.content differs from call 1 of test_one.tape*"]
    )


@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        ("tear='exact'", "", "@pytest.mark.wiretape does not know 'tear'"),
        ("faults=['429@7']", "", "has no call 7"),
        ("max_age='1h', max_age_action='fail'", "", "max_age is 1 hour"),
        ("", "mask = 3", "mask must be a list of strings"),
    ],
)
def test_what_cannot_be_set_up_is_told_once(project: Project, arguments: str, settings: str, said: str) -> None:
    project.tape("test_it/test_one").parent.mkdir(parents=True)
    header = '{"wiretape": 1, "started": "2026-01-01T00:00:00Z", "recorder": "wiretape 0", "redacted": []}\n'
    project.tape("test_it/test_one").write_text(header)
    (project.root / "pyproject.toml").write_text(f"[tool.wiretape]\n{settings}\n")
    project.write(f"""
        @pytest.mark.wiretape({arguments})
        def test_one():
            pass
    """)
    result = project.run("-rN")
    result.assert_outcomes(errors=1)
    text = result.stdout.str()
    assert text.count(said) == 1
    assert "another exception" not in text
