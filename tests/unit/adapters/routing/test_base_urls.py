"""What recording does about base-URL variables that the user has not set."""

from __future__ import annotations

from wiretape.adapters.routing.base_urls import (
    base_url_variables,
    default_route_warning,
    default_routes,
    without_default_routes,
)


def test_a_default_route_is_named_by_its_first_variable() -> None:
    led = default_routes({})
    assert led["api.openai.com"] == "OPENAI_BASE_URL"
    assert led["generativelanguage.googleapis.com"] == "GOOGLE_GEMINI_BASE_URL"


def test_a_provider_whose_variable_is_set_is_led_nowhere() -> None:
    assert "api.openai.com" not in default_routes({"OPENAI_API_BASE": "https://api.openai.com/v1"})


def test_only_what_is_set_is_left() -> None:
    environ = {"OPENAI_BASE_URL": "https://api.openai.com/v1", "OLLAMA_BASE_URL": "http://127.0.0.1:11434"}
    kept = without_default_routes(base_url_variables(environ, 8080), environ)
    assert kept == {
        "OPENAI_BASE_URL": "http://127.0.0.1:8080/api.openai.com/v1",
        "OLLAMA_BASE_URL": "http://127.0.0.1:8080/127.0.0.1:11434",
    }


def test_the_doubt_says_what_to_do() -> None:
    assert default_route_warning("api.openai.com", "OPENAI_BASE_URL") == (
        "wiretape set OPENAI_BASE_URL to api.openai.com, because it was not set. If the program has another default, "
        "export that before recording, or pass --keep-unset"
    )
