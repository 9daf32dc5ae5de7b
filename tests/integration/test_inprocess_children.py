"""Child processes of an in-process replay get answers from its tape or errors; those of a recording are not
affected."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.children import CLIENT
from tests.support.counting import CountingModel

import wiretape
from wiretape.adapters.inprocess.context_record import Record, RecordContextOptions
from wiretape.adapters.inprocess.fork_channel import ForkChannel
from wiretape.errors import MissError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the routes are POSIX's")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingModel]:
    with CountingModel() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


@pytest.fixture
def ask(tmp_path: Path, model: CountingModel) -> Callable[[str], str]:
    """What a child process is told that asks the model."""
    client = tmp_path / "client.py"
    prints = CLIENT.replace("tell(*sys.argv[1:])", "print(ask(sys.argv[1], 'base URL'))")
    client.write_text(f"DEFAULT = {model.url!r}\n{prints}", encoding="utf-8")

    def asked(text: str) -> str:
        return subprocess.check_output([sys.executable, "-S", str(client), text], text=True).strip()

    return asked


@pytest.fixture
def tape(tmp_path: Path, model: CountingModel) -> Path:
    import httpx

    with wiretape.record(tmp_path / "t.tape"):
        body = {"model": "counting-1", "messages": [{"role": "user", "content": "hello"}]}
        httpx.post(f"{model.url}/chat/completions", json=body)
    model.asked.clear()
    return tmp_path / "t.tape"


def test_a_child_of_a_replay_is_answered_from_the_tape(
    tape: Path, model: CountingModel, ask: Callable[[str], str]
) -> None:
    before = dict(os.environ)
    with wiretape.replay(tape) as ctx:
        assert ask("hello") == "answer 1 to: hello"
        assert len(ctx.report.played) == 1
        assert os.environ["OPENAI_BASE_URL"] == before["OPENAI_BASE_URL"]
    assert model.asked == []
    assert ask("live") == "answer 1 to: live"


def test_a_miss_of_a_child_is_reported_when_the_replay_ends(
    tape: Path, model: CountingModel, ask: Callable[[str], str]
) -> None:
    with pytest.raises(MissError, match=r"live +other"), wiretape.replay(tape):
        assert ask("other") == "refused 400"
    assert model.asked == []


def test_a_child_uses_the_replay_in_which_it_was_started(
    tape: Path, model: CountingModel, ask: Callable[[str], str]
) -> None:
    async def replayed() -> str:
        with wiretape.replay(tape) as ctx:
            said = await asyncio.to_thread(ask, "hello")
            await asyncio.sleep(0)
            assert len(ctx.report.played) == 1
            return said

    async def both() -> list[str]:
        return await asyncio.gather(replayed(), replayed())

    assert asyncio.run(both()) == ["answer 1 to: hello"] * 2
    assert model.asked == []


def test_a_copy_of_the_process_starts_programs_that_are_answered(
    tape: Path, model: CountingModel, ask: Callable[[str], str]
) -> None:
    with wiretape.replay(tape) as ctx:
        pid = os.fork()
        if not pid:
            os._exit(0 if ask("hello") == "answer 1 to: hello" else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert len(ctx.report.played) == 1
    assert model.asked == []


def test_a_child_of_a_recording_is_left_alone(
    tmp_path: Path, model: CountingModel, ask: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    with Record(tmp_path / "new.tape", RecordContextOptions(report_empty=False)):
        assert ask("hello") == "answer 1 to: hello"
    assert capsys.readouterr().err == ""


def test_every_patch_is_taken_back(tape: Path) -> None:
    import multiprocessing.spawn

    owners = [(os, "system"), (os, "execv"), (os, "fork"), (subprocess, "_fork_exec"), (os, "posix_spawn")]
    owners.append((multiprocessing.spawn, "get_preparation_data"))
    before = [getattr(owner, name) for owner, name in owners]
    with wiretape.replay(tape), wiretape.replay(tape):
        assert not any(getattr(owner, name) is one for (owner, name), one in zip(owners, before, strict=True))
    assert [getattr(owner, name) for owner, name in owners] == before


def test_calls_of_a_copy_are_made_in_the_process_that_serves_until_it_ends() -> None:
    class Target:
        def __init__(self) -> None:
            self.heard: list[str] = []

        def hear(self, text: str) -> int:
            self.heard.append(text)
            if text == "bad":
                raise ValueError(text)
            return len(self.heard)

        def give(self) -> object:
            return threading.Lock()  # cannot be pickled

    target, copy = Target(), Target()
    channel = ForkChannel({"target": target})
    remote = channel.remote("target", ("hear",), copy)
    assert remote.hear("before") == 1  # no server of this process: the copy's own
    channel.open()
    assert [remote.hear("one"), remote.hear("two"), remote.heard] == [1, 2, ["before"]]
    with pytest.raises(ValueError, match="bad"):
        remote.hear("bad")
    with pytest.raises(RuntimeError, match=r"target\.give: cannot pickle"):
        channel.call("target", "give")
    threads = [threading.Thread(target=remote.hear, args=(str(n),)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(target.heard) == 23
    channel.close()
    assert remote.hear("after") == 2
    with pytest.raises(ConnectionRefusedError):
        channel.remote("target").hear("after")
