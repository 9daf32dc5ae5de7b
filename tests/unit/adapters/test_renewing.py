"""What of a tape still answers when it is renewed."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.support.replaying import chat, exchange, live, reply, response, session, user

from wiretape.adapters.renewing import Renewing
from wiretape.model.http import Ended
from wiretape.replay.values import Answer
from wiretape.views.update_view import Updated, update_view


@pytest.mark.parametrize("ended", [None, Ended.RECORDER_STOPPED])
def test_an_answer_that_its_recorder_lost_is_called_live(ended: Ended | None) -> None:
    body = chat(user("How warm is it?"))
    lost = replace(exchange(1, body, response(reply("Seven."))), response=None, ended=ended)
    renewing = Renewing(session(lost))
    assert renewing.answer(live(body)) is None
    assert renewing.kept == []
    (missed,) = renewing.session.misses
    assert (missed.reason, missed.message) == ("not playable", "call 1 would, but its recorder lost the answer")
    said = Console(width=80, file=io.StringIO())
    said.print(update_view(Updated(renewing.session.report(), [missed], 1, "updated t.tape", written=True)))
    assert said.file.getvalue() == (  # type: ignore[attr-defined]
        "  kept        0 calls\n"
        "  called live 1 exchange, recorded anew\n"
        "              POST /v1/chat/completions: the recorder lost what call 1 gave\n"
        "updated t.tape\n"
    )


def test_an_answer_that_broke_off_by_itself_is_kept() -> None:
    body = chat(user("How warm is it?"))
    broken = replace(exchange(1, body, response(reply("Seven."))), response=None, ended=Ended.UPSTREAM_CLOSED)
    renewing = Renewing(session(broken))
    assert isinstance(renewing.answer(live(body)), Answer)
    assert renewing.kept == [1]
