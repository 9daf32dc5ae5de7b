"""`lint`, `check` and `diff` on real tapes: what they print, and how they exit."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.support.golden import check_screen
from tests.support.views import header, wire_exchanges

from wiretape.cli.main import main
from wiretape.model.http import Exchange, JsonBody
from wiretape.tape.writing.writer import write_tape

Tapes = tuple[str, str]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "WIRETAPE_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("wiretape.adapters.prices.price_list", lambda started=None: None)  # prices change


def edited(exchanges: Sequence[Exchange], number: int, edit: Any) -> list[Exchange]:
    """The exchanges, one of them with its bodies changed by `edit(request, answer)`."""
    made = []
    for exchange in exchanges:
        if exchange.number == number:
            assert isinstance(exchange.request.body, JsonBody)
            assert exchange.response is not None
            assert isinstance(exchange.response.body, JsonBody)
            request, answer = (
                json.loads(json.dumps(body.value)) for body in (exchange.request.body, exchange.response.body)
            )
            edit(request, answer)
            exchange = replace(
                exchange,
                request=replace(exchange.request, body=JsonBody(request)),
                response=replace(exchange.response, body=JsonBody(answer)),
            )
        made.append(exchange)
    return made


def wrong(request: Any, answer: Any) -> None:
    """Arguments that do not fit, of a tool with a schema."""
    request["tools"][0]["parameters"] = {"properties": {"title": {"type": "string"}}, "required": ["title", "minutes"]}
    request["input"][0]["content"] += " Now: 15:05:30"


@pytest.fixture
def tapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tapes:
    """Two runs in a directory that is the current one: as it was, and worse."""
    (tmp_path / "captures").mkdir()
    monkeypatch.chdir(tmp_path)
    write_tape("captures/good.tape", header(), wire_exchanges())
    write_tape("captures/worse.tape", header(), edited(wire_exchanges(), 3, wrong))
    return "captures/good.tape", "captures/worse.tape"


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(argv)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    ("name", "argv", "expected"),
    [
        ("cli-lint", ("lint", "captures", "--ignore", "WT013"), 1),
        ("cli-lint-explain", ("lint", "--explain", "WT009"), 0),
        ("cli-lint-rules", ("lint", "--rules"), 0),
        ("cli-check", ("check", "captures", "--max-calls-per-turn", "3", "--max-input", "50k", "--no-lint-errors"), 1),
        ("cli-check-baseline", ("check", "captures/worse.tape", "--baseline", "captures/good.tape"), 0),
        ("cli-diff", ("diff", "captures/good.tape", "captures/worse.tape"), 1),
        ("cli-diff-all", ("diff", "captures/good.tape", "captures/worse.tape", "--all"), 1),
        ("cli-stats-many", ("stats", "captures"), 0),
    ],
)
def test_screens(
    tapes: Tapes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: int,
    name: str,
    argv: tuple[str, ...],
    expected: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = run(capsys, *argv)
    assert (code, err) == (expected, "")
    assert all(not line.endswith(" ") for line in out.splitlines())
    check_screen(f"{name}-{columns}", out)


# -- lint ------------------------------------------------------------------------------------------------------------


def test_lint_json_names_rule_call_path_and_both_values(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "lint", tapes[1], "--select", "WT004", "--json")
    report = json.loads(out)
    [finding] = report["tapes"][0]["findings"]
    assert (code, report["errors"], report["rules"]) == (1, 1, ["WT004"])
    assert (finding["call"], finding["exchange"], finding["path"]) == (2, 3, "answer.tool_calls[0].arguments")
    assert finding["values"] == {"argument": "(absent)", "schema": "required: title, minutes"}


def test_lint_exits_by_severity(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "lint", tapes[0])[0] == 0
    assert run(capsys, "lint", tapes[1])[0] == 1
    assert run(capsys, "lint", tapes[1], "--ignore", "WT004")[0] == 0
    assert run(capsys, "lint", tapes[1], "--ignore", "WT004", "--fail-on", "warning")[0] == 1
    assert run(capsys, "lint", tapes[1], "--fail-on", "never")[0] == 0


def test_lint_reads_its_settings_and_options_go_first(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[tool.wiretape.lint]\nignore = ['arguments-do-not-fit']\n")
    assert run(capsys, "lint", tapes[1])[0] == 0
    assert run(capsys, "lint", tapes[1], "--ignore", "WT013")[0] == 1
    Path("pyproject.toml").write_text("[tool.wiretape.lint]\nselect = ['WT013']\nfail-on = 'warning'\n")
    assert run(capsys, "lint", tapes[1])[0] == 1
    assert run(capsys, "lint", tapes[1], "--fail-on", "error")[0] == 0


def test_a_broken_tape_is_named_and_the_others_are_looked_at(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("captures/broken.tape").write_text("nonsense")
    code, out, err = run(capsys, "lint", "captures", "--ignore", "WT004")
    assert code == 2
    assert err == "wiretape: captures/broken.tape: is not a tape: it is not JSON text\n"
    assert out.splitlines()[-1] == "2 warnings in 2 tapes; 1 tape could not be read"
    assert run(capsys, "lint", "captures")[0] == 1  # errors go first


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("lint",), "lint needs a TAPE or a directory"),
        (("lint", "captures", "--select", "WT999"), "there is no lint rule 'WT999'; wiretape lint --rules lists them"),
        (("lint", "captures", "--select", "WT001", "--ignore", "WT001"), "no rule is left"),
        (("lint", "empty"), "no tapes under empty"),
        (("check", "captures"), "nothing to check: name a budget, such as --max-calls-per-turn 6"),
        (("check", "captures", "--max-input", "much"), "max-input is 'much': use a whole number, such as 50000 or 50k"),
        (("check", "captures", "--min-cache-hit", "60"), "min-cache-hit is '60': use a share between 0 and 1"),
        (("check", "captures", "--baseline", "old"), "--baseline old: no such file or directory"),
        (("check", "captures", "--baseline", "captures/good.tape"), "is one tape for 2 tapes: name a directory"),
        (("diff", "captures/good.tape", "none.tape"), "none.tape: no such file"),
        (
            ("diff", "captures/good.tape", "captures/good.tape", "--mask", "("),
            "the mask '(' is not a regular expression",
        ),
        (("stats", "captures", "--each", "--by", "day"), "--each shows every tape by itself, and --by adds them up"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    tapes: Tapes, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], said: str
) -> None:
    Path("empty").mkdir()
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert said in err


# -- check -----------------------------------------------------------------------------------------------------------


def test_check_passes_fails_and_tells_what_is_unknown(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "check", tapes[0], "--max-calls-per-turn", "4")[0] == 0
    assert run(capsys, "check", tapes[0], "--max-calls-per-turn", "3")[0] == 1
    code, out, _ = run(capsys, "check", tapes[0], "--max-input", "50k", "--json")
    report = json.loads(out)
    assert (code, report["passed"], report["unknown"]) == (1, False, 1)
    assert report["tapes"][0]["judgements"] == [
        {
            "budget": "max-input",
            "where": "tape",
            "limit": "at most 50,000",
            "actual": "at least 809",
            "outcome": "unknown",
            "detail": "2 calls do not say",
        }
    ]
    assert run(capsys, "check", tapes[0], "--max-input", "50k", "--allow-unknown")[0] == 0
    assert run(capsys, "check", tapes[0], "--max-input", "800", "--allow-unknown")[0] == 1


def test_that_there_is_no_price_list_is_said_once_for_all_tapes(
    tapes: Tapes, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("check", "captures", "--max-cost", "1", "--baseline", "captures")
    code, out, _ = run(capsys, *asked)
    lines = out.splitlines()
    assert code == 1
    assert [line for line in lines if "price" in line] == ["no price list: install wiretape[prices]"]
    assert "failed: 2 budgets cannot be judged" in " ".join(out.split())
    _, markdown, _ = run(capsys, *asked, "--markdown", "-")
    assert markdown.count("no price list") == 1
    told = json.loads(run(capsys, *asked, "--json")[1])
    costs = [one for tape in told["tapes"] for one in tape["judgements"] if "cost" in one["budget"]]
    assert {one["detail"] for one in costs} == {"no price list: install wiretape[prices]"}


def test_a_narrow_terminal_gets_sentences(
    tapes: Tapes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = run(capsys, "check", tapes[0], "--max-calls-per-turn", "3", "--max-input", "50k")[1]
    assert "FAIL max-calls-per-turn (turn 1): 4, at most 3" in " ".join(out.split())
    assert all(len(line) <= 40 for line in out.splitlines())


def test_check_reads_its_settings_and_options_go_first(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[tool.wiretape.check]\nmax-calls-per-turn = 3\nno-lint-errors = true\n")
    code, out, _ = run(capsys, "check", tapes[1], "--json")
    assert (code, [one["outcome"] for one in json.loads(out)["tapes"][0]["judgements"]]) == (
        1,
        ["exceeded", "exceeded"],
    )
    code, out, _ = run(capsys, "check", tapes[0], "--max-calls-per-turn", "4")
    assert code == 0


def test_a_baseline_is_a_tape_or_a_directory_of_the_same_names(
    tapes: Tapes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "check", tapes[0], "--baseline", tapes[0])[0] == 0
    Path("old/deep").mkdir(parents=True)
    Path("captures/deep").mkdir()
    for name in ("good.tape", "deep/more.tape"):
        write_tape(f"captures/{name}", header(), wire_exchanges())
        write_tape(f"old/{name}", header(), wire_exchanges()[:3])
    Path(tapes[1]).unlink()
    code, out, _ = run(capsys, "check", "captures", "--baseline", "old", "--json")
    report = json.loads(out)
    assert code == 1
    calls = [
        (tape["tape"], tape["judgements"][0]["limit"], tape["judgements"][0]["actual"]) for tape in report["tapes"]
    ]
    assert calls == [
        ("captures/good.tape", "at most 2 + 10%", "4"),
        ("captures/deep/more.tape", "at most 2 + 10%", "4"),
    ]


def test_a_tape_that_the_baseline_has_not_cannot_be_judged(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("old").mkdir()
    code, out, _ = run(capsys, "check", tapes[0], "--baseline", "old", "--json")
    [judged] = json.loads(out)["tapes"][0]["judgements"]
    assert (code, judged["outcome"]) == (1, "unknown")
    assert judged["detail"].startswith("old/good.tape is not there")


def test_a_tape_that_is_new_beside_others_is_not_compared(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    tape = Path(tapes[0]).read_bytes()
    for place in ("now/good.tape", "now/more.tape", "old/good.tape"):
        Path(place).parent.mkdir(exist_ok=True)
        Path(place).write_bytes(tape)
    code, out, _ = run(capsys, "check", "now", "--baseline", "old", "--json")
    by_tape = {tape["tape"]: tape["judgements"] for tape in json.loads(out)["tapes"]}
    [new] = by_tape["now/more.tape"]
    assert (code, new["outcome"], new["actual"]) == (0, "skipped", "new")
    assert new["detail"] == "not in the baseline: old/more.tape"
    assert "kept" in {one["outcome"] for one in by_tape["now/good.tape"]}


def test_a_tape_or_a_baseline_that_cannot_be_read_never_passes(
    tapes: Tapes, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken.tape").write_text("nonsense")
    code, out, err = run(capsys, "check", "broken.tape", tapes[0], "--max-calls", "9")
    assert (code, err) == (2, "")
    assert out.splitlines()[:2] == ["broken.tape", "! is not a tape: it is not JSON text"]
    assert out.splitlines()[-1] == "failed: 1 tape could not be read"
    code, out, err = run(capsys, "check", "none.tape", "--max-calls", "9")
    assert (code, out, err) == (2, "none.tape\n! no such file\n\nfailed: 1 tape could not be read\n", "")
    code, out, _ = run(capsys, "check", tapes[0], "--baseline", "broken.tape")
    assert code == 2
    assert "its baseline cannot be read: broken.tape: is not a tape" in " ".join(out.split())


@pytest.fixture
def cut(tapes: Tapes) -> str:
    """A tape whose file ends in the middle of its last document."""
    Path("cut.tape").write_bytes(Path(tapes[0]).read_bytes()[:-40])
    return "cut.tape"


CUT = "the last document is cut off and was left out"


def test_a_tape_that_is_cut_off_never_passes_whatever_the_report(cut: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("check", cut, "--max-calls", "9")
    code, out, _ = run(capsys, *argv, "--json", "--junit", "cut.xml", "--markdown", "cut.md")
    report = json.loads(out)
    judged = report["tapes"][0]["judgements"]
    assert (code, report["passed"], report["unknown"]) == (1, False, 2)
    assert [(one["budget"], one["outcome"], one["actual"]) for one in judged] == [
        ("whole tape", "unknown", "incomplete"),
        ("max-calls", "unknown", "at least 4"),
    ]
    assert judged[0]["detail"].endswith(CUT)
    suite = ElementTree.parse("cut.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    assert "| ❓ | whole tape | tape | complete | incomplete | cut.tape:" in Path("cut.md").read_text(encoding="utf-8")
    assert "failed: 2 budgets cannot be judged" in run(capsys, *argv)[1]
    code, out, _ = run(capsys, *argv, "--allow-unknown")
    assert (code, out.splitlines()[-1]) == (0, "passed, but 2 budgets cannot be judged (allowed)")
    assert run(capsys, "check", cut, "--max-calls", "3", "--allow-unknown")[0] == 1  # too many already


def test_a_tape_whose_recorder_lost_something_never_passes(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    with Path(tapes[0]).open("a") as file:
        file.write('\n{"at": 9000, "incomplete": {"reason": "No space left on device"}}\n')
    code, out, _ = run(capsys, "check", tapes[0], "--max-calls", "9")
    assert (code, out.splitlines()[-1]) == (1, "failed: 2 budgets cannot be judged")
    assert "good.tape: is incomplete: No space left on device" in " ".join(out.split())


def test_an_incomplete_baseline_makes_nothing_worse_and_nothing_pass(
    tapes: Tapes, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tape("short.tape", header(), wire_exchanges()[:3])
    Path("short.tape").write_bytes(Path("short.tape").read_bytes()[:-40])
    code, out, _ = run(capsys, "check", tapes[0], "--baseline", "short.tape", "--json")
    judged = {one["budget"]: one for one in json.loads(out)["tapes"][0]["judgements"]}
    assert code == 1
    assert judged["baseline: whole tape"]["outcome"] == "unknown"
    assert (judged["baseline: calls"]["outcome"], judged["baseline: calls"]["actual"]) == ("unknown", "4")
    assert all(one["outcome"] != "exceeded" for one in judged.values())


def test_lint_finds_that_a_tape_is_cut_off(cut: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "lint", cut, "--select", "WT015", "--json")
    [finding] = json.loads(out)["tapes"][0]["findings"]
    assert (code, finding["name"], finding["severity"]) == (1, "incomplete-tape", "error")
    assert finding["text"].endswith(CUT)
    assert run(capsys, "lint", "captures/good.tape", "--select", "WT015")[0] == 0


def test_rerun_says_that_a_tape_is_cut_off(cut: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(run(capsys, "rerun", cut)[1].split())
    assert "the tape is incomplete, only its exchanges were compared: cut.tape:" in out
    assert CUT in out
    assert json.loads(run(capsys, "rerun", cut, "--json")[1])["gaps"][0].endswith(CUT)


def test_a_passed_check_says_what_was_not_compared(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", tapes[0], "--baseline", tapes[0])
    assert code == 0
    assert " ".join(out.split()).endswith("passed, but 4 of 6 comparisons with the baseline could not be made")


def test_settings_are_spelled_as_the_options_are(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    budgets = 'max-input = "50k"\nmax-output = "1.5M"\nmin-cache-hit = "60%"\ntolerance = "5%"\n'
    Path("pyproject.toml").write_text(f"[tool.wiretape.check]\n{budgets}")
    _, out, _ = run(capsys, "check", tapes[0], "--baseline", tapes[0], "--json")
    limits = {one["budget"]: one["limit"] for one in json.loads(out)["tapes"][0]["judgements"]}
    assert (limits["max-input"], limits["max-output"]) == ("at most 50,000", "at most 1,500,000")
    assert (limits["min-cache-hit"], limits["baseline: calls"]) == ("at least 60%", "at most 4 + 5%")


def test_junit_has_a_suite_for_each_tape_and_a_case_for_each_budget(
    tapes: Tapes, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("check", "captures", "--max-calls-per-turn", "4", "--max-input", "50k", "--no-lint-errors")
    assert run(capsys, *argv, "--junit", "reports/wiretape.xml", "--markdown", "reports/wiretape.md")[0] == 1
    for report in Path("reports").iterdir():
        assert stat.S_IMODE(report.stat().st_mode) == 0o600
        report.chmod(0o644)
    assert run(capsys, *argv, "--junit", "reports/wiretape.xml", "--markdown", "reports/wiretape.md")[0] == 1
    assert {stat.S_IMODE(report.stat().st_mode) for report in Path("reports").iterdir()} == {0o644}
    suites = ElementTree.parse("reports/wiretape.xml").getroot().findall("testsuite")
    assert [(one.get("name"), one.get("tests"), one.get("failures")) for one in suites] == [
        ("captures/good.tape", "3", "1"),
        ("captures/worse.tape", "3", "2"),
    ]
    failures = {case.get("name"): case.find("failure") for case in suites[1].findall("testcase")}
    assert failures["max-calls-per-turn (turn 1)"] is None
    unknown, lint = failures["max-input (tape)"], failures["no-lint-errors (tape)"]
    assert unknown is not None
    assert unknown.get("message") == "cannot be judged: at least 809, the limit is at most 50,000 (2 calls do not say)"
    assert lint is not None
    assert (lint.text or "").startswith("WT004 call 2 answer.tool_calls[0].arguments: ")
    assert run(capsys, *argv[:-1], "--allow-unknown", "--junit", "again.xml")[0] == 0
    assert ElementTree.parse("again.xml").getroot().find(".//skipped") is not None


def test_the_markdown_summary_is_appended_or_printed(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("summary.md").write_text("# before\n")
    assert run(capsys, "check", tapes[0], "--max-calls", "3", "--markdown", "summary.md")[0] == 1
    text = Path("summary.md").read_text(encoding="utf-8")
    assert text.startswith("# before\n### wiretape check failed: 1 budget exceeded\n")
    assert "| ❌ | max-calls | tape | at most 3 | 4 |  |" in text
    printed = run(capsys, "check", tapes[0], "--max-calls", "3", "--markdown", "-")[1]
    assert text == "# before\n" + printed


# -- diff ------------------------------------------------------------------------------------------------------------


def test_diff_exits_with_1_where_runs_differ(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "diff", tapes[0], tapes[0], "--json")
    report = json.loads(out)
    assert (code, report["same"], report["first"]) == (0, True, None)
    code, out, _ = run(capsys, "diff", *tapes, "--json")
    report = json.loads(out)
    assert (code, report["same"], report["a"], report["b"]) == (1, False, *tapes)
    assert report["first"]["call_a"] == 2
    assert report["turns"][0]["pairs"] == [[1, 1], [2, 2], [3, 3], [4, 4]]


def test_diff_leaves_out_what_the_project_masks(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    def reworded(request: Any, answer: Any) -> None:
        request["input"][0]["content"] += " (build 4712)"

    write_tape("other.tape", header(), edited(wire_exchanges(), 5, reworded))
    assert run(capsys, "diff", tapes[0], "other.tape")[0] == 1
    Path("pyproject.toml").write_text("[tool.wiretape]\nmask = [' \\(build \\d+\\)']\n")
    assert run(capsys, "diff", tapes[0], "other.tape")[0] == 1  # one has it and the other has not
    write_tape("third.tape", header(), edited(wire_exchanges(), 5, lambda r, a: reworded(r, a)))
    assert run(capsys, "diff", "third.tape", "other.tape")[0] == 0


# -- stats over many -------------------------------------------------------------------------------------------------


def test_stats_of_a_directory_are_totals(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "stats", "captures", "--json")
    report = json.loads(out)
    assert (code, report["tapes"], report["calls"], report["usage"]["input"]) == (0, 2, 8, 1618)
    assert [(one["name"], one["calls"], one["turns"]) for one in report["by_tape"]] == [
        (tapes[0], 4, 1),
        (tapes[1], 4, 1),
    ]
    assert {one["name"]: one["calls"] for one in report["by_model"]} == {"deepseek-flash": 8}
    assert {one["name"]: one["calls"] for one in report["by_agent"]} == {"root": 4, "schedule_event": 4}
    assert {one["name"]: one["calls"] for one in report["by_tool"]} == {"schedule_event": 2, "create_calendar_event": 2}
    assert [(one["name"], one["calls"]) for one in report["by_day"]] == [("2026-02-28", 8)]
    assert json.loads(run(capsys, "stats", *tapes, "--json")[1]) == report


def test_by_shows_one_table_of_the_totals_even_of_a_single_tape(
    tapes: Tapes, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "stats", tapes[0], "--by", "tool")
    assert code == 0
    assert "By tool" in out
    assert "By model" not in out
    assert sorted(json.loads(run(capsys, "stats", tapes[0], "--by", "day", "--json")[1])) == [
        "by_day", "calls", "cost", "hit_rate", "not_inferences", "prices", "tapes", "tool_calls", "turns", "unreadable",
        "usage",
    ]  # fmt: skip


def test_each_shows_every_tape_as_if_it_were_alone(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    alone = run(capsys, "stats", tapes[0])[1]
    code, out, _ = run(capsys, "stats", "captures", "--each")
    assert code == 0
    assert out.startswith(f"== {tapes[0]}\n\n{alone}\n== {tapes[1]}\n")


def test_totals_name_a_broken_tape_and_go_on(tapes: Tapes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("captures/broken.tape").write_text("nonsense")
    code, out, err = run(capsys, "stats", "captures")
    assert (code, err) == (2, "wiretape: captures/broken.tape: is not a tape: it is not JSON text\n")
    assert out.startswith("Total   2 tapes · 2 turns · 8 calls · 4 tool calls\n")
    assert out.rstrip().endswith("! captures/broken.tape: is not a tape: it is not JSON text")
