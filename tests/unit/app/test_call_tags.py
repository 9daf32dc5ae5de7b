"""Notes model calls and their answers for output tags."""

from __future__ import annotations

from wiretape.app.call_tags import CallTags, TaggingRecorder


class _Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def begin(self, method: str, url: str, http: str | None, headers: object) -> int:
        self.events.append(("begin", url))
        return len([one for one in self.events if one[0] == "begin"])

    def request_data(self, x: int, data: bytes) -> None:
        self.events.append(("data", x, data))

    def request_end(self, x: int) -> None:
        self.events.append(("end", x))

    def response(self, x: int, status: int, headers: object) -> None:
        self.events.append(("response", x))

    def bypassed(self, host: str) -> None:
        self.events.append(("bypassed", host))


def test_only_model_calls_are_counted_and_every_event_is_passed_on() -> None:
    tags, recorder = CallTags(), _Recorder()
    tagging = TaggingRecorder(recorder, tags)  # type: ignore[arg-type]
    page = tagging.begin("GET", "https://api.openai.com/v1/models", "1.1", [])
    tagging.request_end(page)
    first = tagging.begin("POST", "https://api.openai.com/v1/responses", "1.1", [("content-type", "application/json")])
    tagging.request_data(first, b'{"model": "m", "input": "hel')
    tagging.request_data(first, b'lo"}')
    tagging.request_end(first)
    second = tagging.begin("POST", "https://api.openai.com/v1/chat/completions", "1.1", [])
    tagging.request_end(second)
    assert tags() is None
    tagging.response(second, 200, [])
    assert tags() == 2
    tagging.response(first, 200, [])
    assert tags() == 1
    tagging.response(page, 200, [])
    assert tags() == 1
    tags.answered_more(2)
    assert tags() == 4
    tagging.bypassed("pypi.org")
    assert recorder.events[-1] == ("bypassed", "pypi.org")
