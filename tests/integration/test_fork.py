"""A run forked in its middle: from the shell, from the debugger, and with the agent's own program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wiretape.cli.main import main
from wiretape.demo.upstream import serve
from wiretape.model.call import Text
from wiretape.model.run import Run
from wiretape.rerun.fork.answer_edit import body_text
from wiretape.runs.run import build_run
from wiretape.runs.user_text import answer_text
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

CAPTURES = Path(__file__).parents[2] / "captures"
TASK = "帮我约明天下午 3 点和张三开产品评审会，时长 1 小时"
LATER = "OK: created '产品评审会' at 2025-06-11T17:30:00 for 60 min"
LATER_CALL = [
    {
        "tool": "create_calendar_event",
        "arguments": {"title": "产品评审会", "start_iso": "2025-06-11T17:30:00", "duration_minutes": 60},
    }
]
LATER_ANSWER = "已经帮你安排好了：明天（2025-06-11）下午 5 点 30 分和张三的产品评审会，时长 1 小时。"


@pytest.fixture(autouse=True)
def _beside_the_tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(CAPTURES / "subagents.tape", tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def upstream() -> Iterator[str]:
    with serve() as running:
        yield running.url


def run_of(path: str) -> Run:
    return build_run(decode(read_tape(path).exchanges))


def answer_of(path: str, call: int = -1) -> str | None:
    steps = run_of(path).steps
    response = (steps[call - 1] if call > 0 else steps[-1]).call.response
    assert response is not None
    return answer_text(response.messages)


def test_an_edited_tool_result_gets_another_answer(upstream: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("subagents.tape").read_bytes()
    assert main(["fork", "subagents.tape", "2", "--result", LATER, "--base-url", upstream, "-o", "f.tape"]) == 0
    assert Path("subagents.tape").read_bytes() == before
    assert answer_of("f.tape") == LATER_ANSWER
    told = capsys.readouterr()
    assert "from call 3 on it is LIVE" in told.err
    assert "wiretape diff subagents.tape f.tape" in told.out
    forked, tape = read_tape("f.tape"), read_tape("subagents.tape")
    assert forked.header.parent == "subagents.tape"
    assert forked.header.note == "fork of subagents.tape at call 2: another result of create_calendar_event"
    assert [exchange.number for exchange in forked.exchanges] == [1, 2, 3, 4]
    for kept, was in zip(forked.exchanges[:2], tape.exchanges[:2], strict=True):
        assert (kept.request, kept.response, kept.at) == (was.request, was.response, was.at)
    assert main(["rerun", "f.tape"]) == 0
    assert main(["diff", "subagents.tape", "f.tape"]) == 1


def test_an_edited_answer_with_the_result_of_its_tool(upstream: str) -> None:
    Path("a.json").write_text(json.dumps(LATER_CALL, ensure_ascii=False), encoding="utf-8")
    words = ["--answer", "a.json", "--result", LATER, "--base-url", upstream, "-o", "f.tape"]
    assert main(["fork", "subagents.tape", "2", *words]) == 0
    assert answer_of("f.tape") == LATER_ANSWER
    (tool,) = run_of("f.tape").steps[1].call.tool_calls
    assert json.loads(tool.arguments) == LATER_CALL[0]["arguments"]


def test_an_answer_may_get_more_content_in_its_body(monkeypatch: pytest.MonkeyPatch) -> None:
    def more(text: str) -> str:
        body = json.loads(text)
        spoken = [item for item in body["output"] if item["type"] == "message"]
        body["output"] += [{**item, "content": [{"type": "output_text", "text": "Anything else?"}]} for item in spoken]
        return json.dumps(body, ensure_ascii=False)

    monkeypatch.setattr("wiretape.app.fork_changes.in_editor", more)
    assert main(["fork", "subagents.tape", "4", "--edit", "body", "-o", "edited.tape"]) == 0
    (exchange,) = [one for one in read_tape("subagents.tape").exchanges if one.number == 4]
    Path("body.json").write_text(more(body_text(exchange)), encoding="utf-8")
    assert main(["fork", "subagents.tape", "4", "--body", "body.json", "-o", "given.tape"]) == 0
    for name in ("edited.tape", "given.tape"):
        assert answer_of(name).endswith("Anything else?")
    Path("body.json").write_bytes(b"\xff")
    assert main(["fork", "subagents.tape", "4", "--body", "body.json", "-o", "none.tape"]) == 2


def test_an_edited_first_answer_comes_before_the_live_calls(upstream: str) -> None:
    said = [{"reasoning": "Hm."}, {"tool": "schedule_event", "arguments": {"request": TASK}}]
    Path("a.json").write_text(json.dumps(said, ensure_ascii=False), encoding="utf-8")
    assert main(["fork", "subagents.tape", "1", "--answer", "a.json", "--base-url", upstream, "-o", "f.tape"]) == 0
    forked, tape = read_tape("f.tape"), read_tape("subagents.tape")
    assert forked.header.started == tape.header.started
    assert [exchange.number for exchange in forked.exchanges] == [1, 2, 3, 4]
    starts = [exchange.at for exchange in forked.exchanges]
    assert starts == sorted(starts)
    assert starts[1] >= (forked.exchanges[0].ended_at or 0)
    run = run_of("f.tape")
    assert [run.agents[step.agent].name for step in run.steps] == ["root", "schedule_event", "schedule_event", "root"]


def test_a_tool_with_other_arguments_does_not_get_the_recorded_result(
    upstream: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.json").write_text(json.dumps(LATER_CALL), encoding="utf-8")
    assert main(["fork", "subagents.tape", "2", "--answer", "a.json", "--base-url", upstream, "-o", "f.tape"]) == 1
    told = capsys.readouterr().out
    assert "no recorded result for create_calendar_event" in told.replace("\n", " ")
    assert "no recorded result for schedule_event" in told.replace("\n", " ")  # its subagent never came to an end
    assert "--result TEXT" in told
    assert len(run_of("f.tape").steps) == 2


def test_functions_of_a_file_answer_what_the_tape_cannot(upstream: str) -> None:
    Path("a.json").write_text(json.dumps(LATER_CALL), encoding="utf-8")
    Path("tools.py").write_text(
        "def create_calendar_event(title, start_iso, duration_minutes):\n"
        '    return f"OK: created {title!r} at {start_iso} for {duration_minutes} min"\n',
        encoding="utf-8",
    )
    words = ["--answer", "a.json", "--tools", "tools.py", "--base-url", upstream, "-o", "f.tape"]
    assert main(["fork", "subagents.tape", "2", *words]) == 0
    assert answer_of("f.tape") == LATER_ANSWER


def test_another_last_answer_leaves_nothing_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fork", "subagents.tape", "4", "--say", "Done."]) == 0
    assert "nothing left to ask" in capsys.readouterr().out.replace("\n", " ")
    assert answer_of("subagents-fork-4.tape") == "Done."
    assert main(["fork", "subagents.tape", "4", "--say", "Done."]) == 0
    assert Path("subagents-fork-4-2.tape").exists()


def test_another_prompt_is_sent(upstream: str) -> None:
    prompt = "帮我约明天的产品评审会"
    assert main(["fork", "subagents.tape", "1", "--prompt", prompt, "--base-url", upstream, "-o", "f.tape"]) == 0
    run = run_of("f.tape")
    assert run.turns[0].user == prompt
    assert run.turns[0].answer is not None


def test_a_value_of_the_request_is_set(upstream: str) -> None:
    words = ["--set", "temperature=0.25", "--set", "input[0].content=你是日历助手", "--base-url", upstream]
    assert main(["fork", "subagents.tape", "3", *words, "-o", "f.tape"]) == 0
    request = run_of("f.tape").steps[2].call.request
    assert request.settings["temperature"] == 0.25
    assert request.messages[0].blocks == (Text("你是日历助手"),)


def test_an_edited_answer(upstream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = Path("editor.py")
    editor.write_text(
        "import sys, pathlib, os\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "text = path.read_text(encoding='utf-8').replace('15:00', '17:30')\n"
        "path.write_text(text, encoding='utf-8')\n"
        "os.utime(path, (1, 4_000_000_000))\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor.absolute()}")
    words = ["--edit", "answer", "--result", LATER, "--base-url", upstream, "-o", "f.tape"]
    assert main(["fork", "subagents.tape", "2", *words]) == 0
    assert answer_of("f.tape") == LATER_ANSWER


def test_an_editor_that_changes_nothing_sends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VISUAL", "true")
    assert main(["fork", "subagents.tape", "2", "--edit", "request", "-o", "f.tape"]) == 2
    assert "not changed in the editor" in capsys.readouterr().err
    assert not Path("f.tape").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["9"], "has no call 9"),
        (["2", "--say", "x"], "has no text"),
        (["2", "--say", "x", "--prompt", "y"], "only one thing can be changed"),
        (["2", "--result", "x", "--tool", "other"], "has no tool call other; its tool calls: 1 create_calendar_event"),
        (["4", "--result", "x"], "has no tool call"),
        (["4", "--tool", "x"], "use them together"),
        (["4", "--set", "nowhere"], "write PATH=VALUE"),
        (["4", "--set", "input[99]=1"], "leads nowhere"),
        (["4", "-o", "subagents.tape", "--force"], "is the tape itself"),
        (["4", "-o", "there.tape"], "exists already"),
        (["2", "--result", "x", "--", sys.executable, "-c", ""], "only an answer can be changed"),
        (["4", "--model", "m", "--", sys.executable, "-c", ""], "do not apply to a program"),
    ],
)
def test_an_impossible_fork_is_an_error_and_writes_nothing(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there.tape").touch()
    assert main(["fork", "subagents.tape", *words]) == 2
    assert says in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == ["subagents.tape", "there.tape"]


def test_an_unreachable_endpoint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fork", "subagents.tape", "4", "--base-url", "http://127.0.0.1:9", "-o", "f.tape"]) == 2
    assert "could not be reached" in capsys.readouterr().err
    assert not Path("f.tape").exists()


def test_without_a_terminal_no_editor_is_opened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    assert main(["fork", "subagents.tape", "2", "--edit", "answer"]) == 2
    assert "set EDITOR, or give the change with --answer" in capsys.readouterr().err


def test_a_missing_call_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fork", "subagents.tape"]) == 2
    assert "Missing argument 'CALL'." in capsys.readouterr().err


def test_from_the_debugger_at_a_tool(upstream: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = [
        "break tool=create_calendar_event",
        "continue",
        f'fork --result "{LATER}" --base-url {upstream} -o f.tape',
        "diff f.tape",
    ]
    assert main(["debug", "subagents.tape", "--batch", "\n".join(script)]) == 0
    assert answer_of("f.tape") == LATER_ANSWER
    assert "forked to f.tape" in capsys.readouterr().out


def test_a_mistyped_fork_is_an_error_of_the_debugger(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debug", "subagents.tape", "--batch", "goto 2; fork --bogus"]) == 2
    assert "--bogus" in capsys.readouterr().err
    assert main(["debug", "subagents.tape", "--batch", "goto 2; fork --say 'x"]) == 2
    assert "No closing quotation" in capsys.readouterr().err


def agent() -> list[str]:
    return [sys.executable, "-m", "wiretape.demo.subagents"]


@pytest.mark.slow
@pytest.mark.proxy
def test_the_programs_own_run_of_a_fork_is_equal(upstream: str) -> None:
    pytest.importorskip("mitmproxy", reason="recording needs mitmproxy (Python 3.12 or later)")
    Path("a.json").write_text(json.dumps(LATER_CALL, ensure_ascii=False), encoding="utf-8")
    fork = ["fork", "subagents.tape", "2", "--answer", "a.json", "-o", "own.tape"]
    done = subprocess.run(
        [sys.executable, "-m", "wiretape", *fork, "--", *agent()],
        env={**os.environ, "DEEPSEEK_BASE_URL": upstream, "DEEPSEEK_API_KEY": "sk-demo"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert LATER_ANSWER in done.stdout
    assert answer_of("own.tape") == LATER_ANSWER
    assert read_tape("own.tape").header.parent == "subagents.tape"
    words = ["--answer", "a.json", "--result", LATER, "--base-url", upstream, "-o", "engine.tape"]
    assert main(["fork", "subagents.tape", "2", *words]) == 0
    assert main(["diff", "own.tape", "engine.tape"]) == 0
