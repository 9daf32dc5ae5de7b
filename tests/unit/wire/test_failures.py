"""Provider errors of any shape."""

from __future__ import annotations

from typing import Any

import pytest

from wiretape.model.http import Headers
from wiretape.wire.failures import call_error, has_error

SHAPES: list[tuple[int, Any, tuple[str | None, str | None, str]]] = [
    (
        400,
        {"error": {"message": "m", "type": "invalid_request_error", "param": None, "code": None}},
        ("invalid_request_error", None, "m"),
    ),
    (404, {"error": {"code": "404", "message": "Resource not found"}}, (None, "404", "Resource not found")),
    (401, {"detail": "Unauthorized"}, (None, None, "Unauthorized")),
    (
        422,
        {"detail": [{"loc": ["body"], "msg": "field required", "type": "missing"}]},
        ("missing", None, "field required"),
    ),
    (400, {"object": "error", "message": "m", "type": "BadRequestError", "code": 400}, ("BadRequestError", "400", "m")),
    (400, {"code": "Some code", "error": "plain text"}, (None, "Some code", "plain text")),
    (429, {"error": {"code": "1302", "message": "速率限制"}}, (None, "1302", "速率限制")),
    (500, {"id": "x", "error": {"message": "m", "type": "server_error"}}, ("server_error", None, "m")),
    (400, {"success": False, "errors": [{"code": 7003, "message": "no route"}]}, (None, "7003", "no route")),
    (
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ("overloaded_error", None, "Overloaded"),
    ),
    (400, [{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}], ("INVALID_ARGUMENT", "400", "m")),
    (400, {"strange": 1}, (None, None, '{"strange":1}')),
    (500, None, (None, None, "HTTP 500")),
]


@pytest.mark.parametrize(("status", "body", "expected"), SHAPES)
def test_errors_of_all_shapes_are_read(status: int, body: Any, expected: tuple[str | None, str | None, str]) -> None:
    error = call_error(status, body, Headers())
    assert (error.type, error.code, error.message, error.status) == (*expected, status)


def test_openrouters_reason_is_read_from_json_in_a_string() -> None:
    raw = '{"error":{"message":"model is overloaded"}}'
    body = {
        "error": {"code": 502, "message": "Provider returned error", "metadata": {"provider_name": "P", "raw": raw}}
    }
    error = call_error(200, body, Headers())
    assert (error.status, error.message, error.retryable) == (502, "Provider returned error: model is overloaded", True)


def test_amazons_error_type_is_read_from_a_header() -> None:
    error = call_error(429, {"message": "Too many"}, Headers([("x-amzn-errortype", "ThrottlingException:http://x")]))
    assert (error.type, error.message, error.retryable) == ("ThrottlingException", "Too many", True)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_retryable_statuses(status: int) -> None:
    assert call_error(status, None, Headers()).retryable


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (400, "invalid_request_error", False),
        (401, "authentication_error", False),
        (200, "overloaded_error", True),
        (200, "server_error", True),
        (200, "invalid_request_error", False),
        (200, "RESOURCE_EXHAUSTED", True),
    ],
)
def test_retryable_types(status: int, kind: str, expected: bool) -> None:
    assert call_error(status, {"error": {"type": kind, "message": "m"}}, Headers()).retryable is expected


def test_insufficient_quota_is_not_retryable() -> None:
    body = {"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "m"}}
    assert not call_error(429, body, Headers()).retryable


DATES = [("retry-after", "Sun, 29 Nov 2026 10:00:30 GMT"), ("date", "Sun, 29 Nov 2026 10:00:00 GMT")]
WAITS: list[tuple[list[tuple[str, str]], str, int | None]] = [
    ([("retry-after", "2")], "", 2000),
    ([("retry-after", "1.5")], "", 1500),
    ([("retry-after-ms", "250"), ("retry-after", "9")], "", 250),
    (DATES, "", 30_000),
    ([("retry-after", "Sun, 29 Nov 2026 10:00:30 GMT")], "", None),
    ([("retry-after", "soon")], "", None),
    ([("x-ratelimit-reset-tokens", "6m0s"), ("x-ratelimit-reset-requests", "20ms")], "", 360_000),
    ([("x-ratelimit-reset", "1796000000")], "", None),
    ([], "Rate limit reached. Please try again in 1.2s.", 1200),
    ([], "Please retry after 3 seconds", 3000),
    ([], "Please try again in 20ms.", 20),
    ([], "no hint", None),
]


@pytest.mark.parametrize(("headers", "message", "expected"), WAITS)
def test_the_most_explicit_wait_is_used(headers: list[tuple[str, str]], message: str, expected: int | None) -> None:
    assert call_error(429, {"error": {"message": message or "m"}}, Headers(headers)).retry_after_ms == expected


def test_googles_retry_delay_is_read_from_its_details() -> None:
    body = {"error": {"message": "m", "details": [{"@type": "RetryInfo", "retryDelay": "12s"}]}}
    assert call_error(429, body, Headers()).retry_after_ms == 12_000


def test_rate_limits_of_other_errors_are_not_a_wait() -> None:
    assert call_error(400, None, Headers([("x-ratelimit-reset-tokens", "6m0s")])).retry_after_ms is None


@pytest.mark.parametrize(
    ("code", "status"),
    [("429", 429), (503, 503), ("05001", 200), ("4290", 200), ("399", 200), ("600", 200), ("4" * 5000, 200)],
)
def test_a_code_that_is_an_error_status_replaces_a_successful_status(code: str | int, status: int) -> None:
    assert call_error(200, {"error": {"message": "m", "code": code}}, Headers([])).status == status


def test_a_successful_status_may_carry_an_error() -> None:
    assert has_error({"error": {"message": "m"}})
    assert has_error({"type": "error"})
    assert has_error({"success": False, "errors": [1]})
    for fine in ({"error": None}, {"error": ""}, {"error": {}}, {}, [], None, {"success": True}):
        assert not has_error(fine)
