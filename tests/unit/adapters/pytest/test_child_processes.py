from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from wiretape.adapters.inprocess.context_record import Record, RecordContextOptions
from wiretape.adapters.pytest.child_processes import need_mitmproxy, recording_children

pytestmark = pytest.mark.proxy


def test_a_notice_of_the_recorder_survives_a_closed_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    notices: list[Callable[[str], None]] = []

    class Proxy:
        port = 1

        def __init__(self, recorder: object, environ: object, say: Callable[[str], None], **more: Any) -> None:
            notices.append(say)

        def __enter__(self) -> Proxy:
            return self

        def __exit__(self, *error: object) -> None:
            pass

    need_mitmproxy()  # imports it, without the warnings of its dependencies
    monkeypatch.setattr("wiretape.app.recording_server.RecordingServer", Proxy)
    with recording_children(Record("x.tape", RecordContextOptions())):
        shown = io.StringIO()
        monkeypatch.setattr(sys, "stderr", shown)
        notices[0]("a notice")
        assert shown.getvalue() == "wiretape: a notice\n"
        shown.close()
        notices[0]("another notice")  # raises nothing
