"""Wrapped tools in tests: recorded with the calls, answered from the tape, and recorded where they are new."""

from __future__ import annotations

from tests.support.counting import CountingModel
from tests.support.projects import Project

from wiretape.tape.reading.reader import read_tape
from wiretape.wire.mcp.traffic import served_tool_calls

HEAD = """
    import wiretape
    ran = []

    @wiretape.tool
    def weather(city):
        ran.append(city)
        return {"city": city, "degrees": len(city)}
"""
ONE = f"""
    {HEAD}
    @pytest.mark.wiretape
    def test_one():
        assert "to: hello" in said("hello")
        assert weather("Bern") == {{"city": "Bern", "degrees": 4}}
        print("ran", *ran)
"""
MORE = f"""
    {HEAD}
    @pytest.mark.wiretape
    def test_one():
        assert "to: hello" in said("hello")
        print("got", weather("Bern"), weather("Oslo")["degrees"])
        print("ran", *ran)
"""


def tools_on(project: Project) -> list[object]:
    return [one.arguments for one in served_tool_calls(read_tape(project.tape("test_it/test_one")).exchanges)]


def test_a_tool_runs_while_a_test_is_recorded_and_never_again(project: Project, model: CountingModel) -> None:
    project.write(ONE)
    first = project.run("--wiretape-mode=once", "-s")
    first.assert_outcomes(passed=1)
    first.stdout.fnmatch_lines(["*ran Bern"])
    again = project.run("-s")
    again.assert_outcomes(passed=1)
    again.stdout.fnmatch_lines(["*ran"])
    assert tools_on(project) == [{"city": "Bern"}]


def test_a_call_that_was_never_recorded_fails_the_test_with_the_difference(
    project: Project, model: CountingModel
) -> None:
    project.write(ONE)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.write(MORE)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*it diverges from x2 at arguments.city*", "*recorded  Bern*", "*live      Oslo*"])


def test_new_runs_and_records_the_calls_that_the_tape_does_not_answer(project: Project, model: CountingModel) -> None:
    project.write(ONE)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.write(MORE)
    result = project.run("--wiretape-mode=new", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*got {'city': 'Bern', 'degrees': 4} 4", "ran Oslo"])
    assert tools_on(project) == [{"city": "Bern"}, {"city": "Oslo"}]
    again = project.run("-s")
    again.assert_outcomes(passed=1)
    again.stdout.fnmatch_lines(["ran"])
    assert model.asked == ["hello"]
