"""A loop that only appends never breaks the cache; an edit of the history is found at its place."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.caching import ANTHROPIC, OPENAI, PROMPT, asked, history, marked, tokens, tool
from tests.support.calls import result, system, user

from wiretape.analyze.cache.diagnosis import diagnose
from wiretape.model.call import Message, ModelCall
from wiretape.runs.run import build_run

DEEPSEEK, NOBODY = "https://api.deepseek.com/chat/completions", "https://nobody.test/v1/chat/completions"
hosts = st.sampled_from([OPENAI, ANTHROPIC, DEEPSEEK, NOBODY])
words = st.text(st.sampled_from("ab é时0:-\n"), max_size=40)
offers = st.lists(
    st.sampled_from([tool("look"), tool("book"), tool("sing")]), unique_by=lambda one: one.name, max_size=3
)
LEAST = {OPENAI: 1024, DEEPSEEK: 128}
MODELS = {DEEPSEEK: "deepseek-chat", NOBODY: "m"}


@st.composite
def loops(draw: st.DrawFn) -> list[ModelCall]:
    """Calls that each send all that the last one sent, and more; served as the provider's rules have it."""
    url, tools, told = draw(hosts), draw(offers), draw(st.booleans())
    sent: list[Message] = history(0, system(draw(words) + draw(st.sampled_from(["", PROMPT]))))
    calls: list[ModelCall] = []
    before = 0
    for number in range(1, draw(st.integers(2, 7)) + 1):
        if number > 1:
            more = history(number)[2:][-2:]
            sent = [*sent, more[0], result(draw(words), f"c{number}")]
            sent += [user(draw(words) or "go on")] if draw(st.booleans()) else []
        copied = [replace(message) for message in sent] if draw(st.booleans()) else sent
        now = tokens(copied, tools)
        served = before // 128 * 128 if url in LEAST and before >= LEAST[url] else before if url == ANTHROPIC else 0
        written = now - served if url == ANTHROPIC else None
        shown = marked(copied, -1) if url == ANTHROPIC else copied
        model = MODELS.get(url)
        one = asked(number, shown, served if told else None, url=url, offers=tools, written=written, model=model)
        calls.append(replace(one, dialect="deepseek") if url == DEEPSEEK else one)
        before = now
    return calls


@settings(deadline=None)
@given(loops())
def test_no_false_alarm_where_nothing_but_the_end_changed(calls: list[ModelCall]) -> None:
    report = diagnose(build_run(calls))
    assert [one.call for one in report.calls] == [call.number for call in calls]
    for one in report.calls:
        assert one.verdict in ("first", "served", "below_minimum", "unknown"), one
        assert one.breaks == []
        assert one.lost_tokens is None
        if one.verdict == "served" and one.compared_with is not None:
            assert one.predicted == one.reported


@settings(deadline=None)
@given(loops(), st.data())
def test_an_edit_is_found_at_its_place(calls: list[ModelCall], data: st.DataObject) -> None:
    last = calls[-1]
    messages = list(last.request.messages)
    place = data.draw(st.integers(1, len(calls[-2].request.messages) - 1))
    if messages[place].role != "tool":
        return
    messages[place] = result("quite another thing", f"c{place}", None)
    usage = last.usage
    assert usage is not None
    assert last.response is not None
    unserved = replace(last.response, usage=replace(usage, cached=None if usage.cached is None else 0))
    edited = replace(last, request=replace(last.request, messages=tuple(messages)), response=unserved)
    found = diagnose(build_run([*calls[:-1], edited])).calls[-1]
    if found.compared_with != calls[-2].number:  # an edited history is a fork that continues from an earlier call
        assert found.compared_with is None or found.compared_with < calls[-2].number
    elif found.verdict == "broken":
        assert found.breaks[0].path.startswith(f"messages[{place}]")
    else:
        assert found.verdict == "below_minimum"
