"""What of a tape still answers when it is renewed."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.support import sockets
from tests.support.replaying import chat, exchange, live, reply, response, session, user

from wiretape.adapters.update.session import UpdateSession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import Answer
from wiretape.model.http import Ended
from wiretape.tape.editing.splice import Fresh, Kept
from wiretape.views.replay.update import UpdateSummary, update_view


@pytest.mark.parametrize("ended", [None, Ended.RECORDER_STOPPED])
def test_an_answer_that_its_recorder_lost_is_called_live(ended: Ended | None) -> None:
    body = chat(user("How warm is it?"))
    lost = replace(exchange(1, body, response(reply("Seven."))), response=None, ended=ended)
    update_session = UpdateSession(session(lost))
    assert update_session.answer(live(body)) is None
    assert update_session.kept == []
    (missed,) = update_session.session.misses
    assert (missed.reason, missed.message) == ("not playable", "call 1 would answer, but its recording is incomplete")
    said = Console(width=80, file=io.StringIO())
    said.print(update_view(UpdateSummary(update_session.session.report(), [missed], 1, "updated t.tape", written=True)))
    assert said.file.getvalue() == (  # type: ignore[attr-defined]
        "  kept        0 calls\n"
        "  called live 1 exchange, recorded anew\n"
        "              POST /v1/chat/completions: the recorder lost what call 1 gave\n"
        "updated t.tape\n"
    )


def test_an_answer_that_broke_off_by_itself_is_kept() -> None:
    body = chat(user("How warm is it?"))
    broken = replace(exchange(1, body, response(reply("Seven."))), response=None, ended=Ended.UPSTREAM_CLOSED)
    update_session = UpdateSession(session(broken))
    assert isinstance(update_session.answer(live(body)), Answer)
    assert update_session.kept == [1]


def test_a_websocket_that_was_played_is_kept_and_one_that_nobody_opened_is_not() -> None:
    said = [sockets.create("hi"), *sockets.events("resp_1", sockets.message("Hello."))]
    made = session(
        exchange(1, chat(user("one"))),
        sockets.socket(said, number=2),
        sockets.socket([sockets.create("never"), *said[1:]], number=3),
        exchange(4, chat(user("two"))),
    )
    update_session = UpdateSession(made)
    assert isinstance(update_session.answer(live(chat(user("one")))), Answer)
    play = made.open_socket(live(None, url=sockets.URL, method="GET", upgrade="websocket"))
    assert isinstance(play, SocketPlay)
    play.receive(sockets.text(said[0][1]))
    assert play.due()
    assert update_session.answer(live(chat(user("other")))) is None
    update_session.note_live_call(5)
    fresh = exchange(5, chat(user("other")))
    assert update_session.kept == [1, 2]
    assert update_session.order({5: fresh}) == [Kept(1), Fresh(fresh), Kept(2)]
    assert [one.exchange for one in update_session.report().left_over] == [4]
    assert (update_session.report().sockets, update_session.drifted) == (1, True)
    assert [miss.what for miss in update_session.called_live] == ["POST /v1/chat/completions"]


def test_nothing_has_drifted_where_every_call_was_answered() -> None:
    body = chat(user("one"))
    update_session = UpdateSession(session(exchange(1, body)))
    assert update_session.drifted  # nobody has asked for it yet
    update_session.answer(live(body))
    assert not update_session.drifted
