"""Which Host and Origin headers are served on wiretape's own ports."""

from __future__ import annotations

import pytest

from wiretape.adapters.routing.admission import Admission
from wiretape.model.http import Headers

OURS = [
    "127.0.0.1",
    "127.0.0.1:8080",
    "[::1]:8080",
    "192.168.1.7:80",
    "[2001:db8::7]",
    "localhost",
    "LOCALHOST:8080",
    "localhost.",
    "app.localhost:8080",
    "host.docker.internal:8080",
    "api.openai.com",
    "",
]
FOREIGN = ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "x", "[::1", "a@b"]
PROGRAMS = [
    "null",
    "http://localhost:3000",
    "https://127.0.0.1",
    "http://[::1]:5173",
    "http://tauri.localhost",
    "vscode-webview://1a2b",
    "app://obsidian.md",
    "tauri://localhost",
    "capacitor://localhost",
    "chrome-extension://abcdef",
]
PAGES = ["https://evil.example", "http://localhost.evil.example", "http://evil.example:80", "evil.example", "https://"]


@pytest.fixture
def admission() -> Admission:
    return Admission(is_recorded=lambda host: host == "api.openai.com")


@pytest.mark.parametrize("host", OURS)
def test_hosts_of_this_machine_and_recorded_ones_are_served(admission: Admission, host: str) -> None:
    assert admission.refusal(Headers([("host", host)])) is None
    assert admission.refusal(Headers()) is None  # HTTP/1.0 has no Host


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_host_is_refused(admission: Admission, host: str) -> None:
    assert "--allow-host" in (admission.refusal(Headers([("host", host)])) or "")
    assert admission.refusal(Headers([("host", "localhost"), ("host", host)]))  # one of several is enough


@pytest.mark.parametrize("origin", PROGRAMS)
def test_programs_and_pages_of_this_machine_are_served(admission: Admission, origin: str) -> None:
    assert admission.refusal(Headers([("host", "localhost"), ("origin", origin)])) is None


@pytest.mark.parametrize("origin", PAGES)
def test_a_foreign_page_is_refused(admission: Admission, origin: str) -> None:
    assert "--allow-origin" in (admission.refusal(Headers([("host", "localhost"), ("origin", origin)])) or "")


def test_what_is_allowed_is_served() -> None:
    admission = Admission(["*.corp.example", "recorder"], ["https://*.corp.example", "http://page.example:8080/"])
    for host, origin in [("a.corp.example:1", "https://b.corp.example"), ("recorder", "http://page.example:8080")]:
        assert admission.refusal(Headers([("host", host), ("origin", origin)])) is None
    assert admission.refusal(Headers([("host", "corp.example")]))
    assert admission.refusal(Headers([("host", "recorder"), ("origin", "http://page.example")]))


def test_a_refusal_names_the_option_that_serves_it(admission: Admission) -> None:
    assert admission.refusal(Headers([("host", "evil.example:80")])) == (
        "the Host header names evil.example, which is not this machine (--allow-host evil.example)"
    )
    assert admission.refusal(Headers([("origin", "https://evil.example")])) == (
        "the request comes from a page of https://evil.example (--allow-origin https://evil.example)"
    )
