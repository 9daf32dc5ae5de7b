"""`wiretape merge-driver` merges tapes exchange by exchange, in real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.taping import STARTED, Clock

from wiretape.errors import TapeDamaged
from wiretape.model.http import JsonBody
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

WIRETAPE = Path(sys.executable).with_name("wiretape")

pytestmark = [pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"), pytest.mark.slow]


class Repository:
    """A git repository with one tape, `a.tape`."""

    def __init__(self, root: Path) -> None:
        self.root, self.tape = root, root / "a.tape"
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@example.org")

    def git(self, *arguments: str, code: int = 0) -> str:
        environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, capture_output=True, text=True, env=environment | {"GIT_EDITOR": "true"}
        )
        assert (done.returncode != 0) == (code != 0), done.stdout + done.stderr
        return done.stdout + done.stderr

    def install(self) -> None:
        subprocess.run([WIRETAPE, "merge-driver", "--install"], cwd=self.root, check=True, capture_output=True)

    def record(self, second: int, *questions: str, append: bool = True) -> None:
        """Record calls that start `second` seconds after the first recording, and commit the tape."""
        clock = Clock()
        clock.tick(1000 * second)
        recorder = Recorder(
            self.tape,
            clock=clock,
            started=STARTED.replace(second=second),
            redactor=Redactor(),
            on_exchange=lambda exchange: None,
            on_trouble=lambda text: None,
            append=append,
        )
        for question in questions:
            number = recorder.begin("POST", "https://api.example.com/v1/chat", "1.1", [("content-type", "a/json")])
            recorder.request_data(number, b'{"messages":["%s"]}' % question.encode())
            recorder.request_end(number)
            clock.tick(5)
            recorder.response(number, 200, [("content-type", "application/json")])
            recorder.response_data(number, b'{"answer":"%s"}' % question.encode())
            recorder.end(number)
            clock.tick(5)
        recorder.close()
        self.commit(f"record {questions}")

    def edit(self, old: str, new: str) -> None:
        text = self.tape.read_text(encoding="utf-8")
        assert old in text
        self.tape.write_text(text.replace(old, new), encoding="utf-8")
        self.commit(f"{old} -> {new}")

    def commit(self, subject: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)

    def questions(self) -> list[str]:
        bodies = [exchange.request.body for exchange in read_tape(self.tape).exchanges]
        return [body.value["messages"][0] for body in bodies if isinstance(body, JsonBody)]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    made.install()
    made.record(0, "one", append=False)
    return made


def both_append(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "other")
    repository.record(10, "other 1", "other 2")
    repository.git("checkout", "-q", "main")
    repository.record(20, "main 1", "main 2")


ALL = ["one", "other 1", "other 2", "main 1", "main 2"]


def test_branches_that_both_append_merge_without_markers(repository: Repository) -> None:
    both_append(repository)
    repository.git("merge", "-q", "other")
    assert repository.questions() == ALL
    assert b"<<<<<<<" not in repository.tape.read_bytes()
    assert [exchange.number for exchange in read_tape(repository.tape).exchanges] == [1, 2, 3, 4, 5]
    assert repository.git("status", "--porcelain") == ""


def test_a_branch_that_appends_can_be_rebased(repository: Repository) -> None:
    both_append(repository)
    repository.record(30, "main 3")
    repository.git("rebase", "-q", "other")
    assert repository.questions() == [*ALL, "main 3"]


def test_a_merged_tape_merges_again(repository: Repository) -> None:
    both_append(repository)
    repository.git("merge", "-q", "other")
    repository.git("checkout", "-q", "other")
    repository.record(40, "other 3")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "other")
    assert repository.questions() == [*ALL, "other 3"]


def test_an_edit_and_an_append_merge(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "other")
    repository.edit('"answer": "one"', '"answer": "edited"')
    repository.git("checkout", "-q", "main")
    repository.record(10, "two")
    repository.git("merge", "-q", "other")
    assert repository.questions() == ["one", "two"]
    assert '"answer": "edited"' in repository.tape.read_text(encoding="utf-8")


def test_edits_of_the_same_exchange_are_a_conflict_that_leaves_ours(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "other")
    repository.edit('"answer": "one"', '"answer": "theirs"')
    repository.git("checkout", "-q", "main")
    repository.edit('"answer": "one"', '"answer": "ours"')
    before = repository.tape.read_bytes()
    said = repository.git("merge", "other", code=1)
    assert "a.tape: exchange 1 (https://api.example.com/v1/chat) was changed on the two branches" in said
    assert "git checkout --ours a.tape" in said
    assert "CONFLICT" in said
    assert repository.tape.read_bytes() == before
    assert "UU a.tape" in repository.git("status", "--porcelain")


def test_tapes_re_recorded_on_both_branches_are_a_conflict(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "other")
    repository.record(10, "other run", append=False)
    repository.git("checkout", "-q", "main")
    repository.record(20, "main run", append=False)
    said = repository.git("merge", "other", code=1)
    assert "both branches recorded this tape, in different runs" in said
    assert repository.questions() == ["main run"]


def test_a_damaged_tape_is_a_conflict_that_names_it(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "other")
    repository.record(10, "two")
    repository.edit('"exchange": 1,', '"exchange": 1')
    repository.git("checkout", "-q", "main")
    repository.record(20, "three")
    said = repository.git("merge", "other", code=1)
    assert "a.tape: theirs/a.tape:" in said
    assert repository.questions() == ["one", "three"]


def test_without_the_driver_the_markers_are_named_and_the_named_commands_keep_all_calls(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.record(0, "one", append=False)
    both_append(repository)
    repository.git("merge", "other", code=1)
    assert b"<<<<<<<" in repository.tape.read_bytes()
    with pytest.raises(TapeDamaged, match="git conflict markers: a merge was not finished") as raised:
        read_tape(repository.tape)
    assert "wiretape merge-driver --install && git checkout --merge" in str(raised.value)
    repository.install()
    repository.git("checkout", "--merge", "a.tape")
    assert repository.questions() == ALL


def test_installing_twice_writes_the_attributes_once(repository: Repository) -> None:
    repository.install()
    lines = (repository.root / ".gitattributes").read_text(encoding="utf-8").splitlines()
    assert lines == ["*.tape merge=wiretape -text", "*.tape.zst merge=wiretape -text"]


def test_installing_without_a_repository_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run([WIRETAPE, "merge-driver", "--install"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "not a git repository" in done.stderr
