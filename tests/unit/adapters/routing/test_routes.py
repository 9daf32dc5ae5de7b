import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.adapters.launch.child import proxy_variables
from wiretape.adapters.launch.trust import ADDING, PHP_SETTINGS, REPLACING
from wiretape.adapters.routing.base_urls import (
    DEFAULT_BASE_URLS,
    base_url_hosts,
    base_url_variables,
    default_routes,
    unroutable_base_urls,
)
from wiretape.adapters.routing.routes import base_url_problem, route_path, route_url, without_user


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("/api.deepseek.com/v1/x?y=1", "https://api.deepseek.com/v1/x?y=1"),
        ("/api.deepseek.com/chat/completions", "https://api.deepseek.com/chat/completions"),
        ("/API.DeepSeek.com/v1", "https://api.deepseek.com/v1"),
        ("/127.0.0.1:9000/v1/chat/completions", "http://127.0.0.1:9000/v1/chat/completions"),
        ("/localhost:11434/api/chat", "http://localhost:11434/api/chat"),
        ("/localhost/api/chat", "http://localhost/api/chat"),
        ("/[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("/127.0.0.1:443/v1", "https://127.0.0.1:443/v1"),
        ("/models.internal:8443/v1", "https://models.internal:8443/v1"),
        ("/models:8443/v1", "https://models:8443/v1"),
        ("/10.1.2.3/v1", "https://10.1.2.3/v1"),
        ("/http:models.internal:8080/v1", "http://models.internal:8080/v1"),
        ("/https:127.0.0.1:9000/v1", "https://127.0.0.1:9000/v1"),
        ("/http:gpu/v1", "http://gpu/v1"),
        ("/http%3Amodels.internal%3A8080/v1/a%2Fb?q=%20", "http://models.internal:8080/v1/a%2Fb?q=%20"),
        ("/api.x.ai", "https://api.x.ai/"),
        ("/api.x.ai?a=b", "https://api.x.ai/?a=b"),
        ("/api.x.ai//v1//x", "https://api.x.ai//v1//x"),
        ("/api.anthropic.com/messages?beta=true", "https://api.anthropic.com/v1/messages?beta=true"),
        ("/api.anthropic.com/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("/gateway.example/messages", "https://gateway.example/messages"),
    ],
)
def test_the_first_segment_names_the_host(target: str, url: str) -> None:
    assert route_url(target) == url


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/v1/chat/completions",
        "/v1.1/models",
        "/chat",
        "/?x=api.x.ai/v1",
        "/user@api.x.ai/v1",
        "/..//v1",
        "/a b.com/v1",
        "/api.x.ai:0/v1",
        "/api.x.ai:99999/v1",
        "/.com/v1",
    ],
)
def test_a_path_without_a_host_leads_nowhere(target: str) -> None:
    assert route_url(target) is None


def test_requests_that_name_no_host_go_upstream() -> None:
    upstream = "https://api.deepseek.com/beta/"
    assert route_url("/chat/completions?a=1", upstream) == "https://api.deepseek.com/beta/chat/completions?a=1"
    assert route_url("/v1/models", "http://127.0.0.1:9000") == "http://127.0.0.1:9000/v1/models"
    assert route_url("/", "http://127.0.0.1:9000") == "http://127.0.0.1:9000/"
    assert route_url("/openapi.json", upstream) == "https://api.deepseek.com/beta/openapi.json"
    assert route_url("/api.openai.com/v1/x", upstream) == "https://api.openai.com/v1/x"


HOSTS = st.sampled_from(["api.x.ai", "localhost", "127.0.0.1", "[::1]", "gpu", "models.internal", "v1.1", "10.0.0.7"])
PATHS = st.text(alphabet=string.ascii_letters + string.digits + "/._-~%", max_size=20).map(lambda s: f"/{s}")


@given(st.sampled_from(["http", "https"]), HOSTS, st.none() | st.integers(1, 65535), PATHS)
def test_route_path_is_the_inverse(scheme: str, host: str, port: int | None, path: str) -> None:
    url = f"{scheme}://{host}" + (f":{port}" if port else "") + path
    routed = route_url(route_path(url))
    assert routed is not None
    default = {"http": ":80", "https": ":443"}[scheme]
    assert routed in (url, url.replace(f"{host}{default}", host, 1))


def test_each_default_carries_the_path_that_its_clients_expect() -> None:
    variables = base_url_variables({}, 8080)
    assert variables["OPENAI_BASE_URL"] == "http://127.0.0.1:8080/api.openai.com/v1"
    assert variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8080/api.anthropic.com"
    assert variables["DEEPSEEK_BASE_URL"] == "http://127.0.0.1:8080/api.deepseek.com"
    assert variables["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:8080/generativelanguage.googleapis.com"
    assert variables["OPENROUTER_BASE_URL"] == "http://127.0.0.1:8080/openrouter.ai/api/v1"
    assert set(variables) == set(DEFAULT_BASE_URLS)


def test_the_users_own_value_goes_before_the_default() -> None:
    environ = {
        "OPENAI_BASE_URL": "https://llm.corp.example/openai/v1",
        "DEEPSEEK_BASE_URL": "http://127.0.0.1:9000",
        "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/",
        "ARK_BASE_URL": "http://gpu.corp.example:8000/api/v3",
    }
    variables = base_url_variables(environ, 8080)
    assert variables["OPENAI_BASE_URL"] == "http://127.0.0.1:8080/llm.corp.example/openai/v1"
    assert variables["DEEPSEEK_BASE_URL"] == "http://127.0.0.1:8080/127.0.0.1:9000"
    assert variables["AZURE_OPENAI_ENDPOINT"] == "http://127.0.0.1:8080/mine.openai.azure.com/"
    assert variables["ARK_BASE_URL"] == "http://127.0.0.1:8080/http:gpu.corp.example:8000/api/v3"
    assert base_url_hosts(environ) == {"llm.corp.example", "127.0.0.1", "mine.openai.azure.com", "gpu.corp.example"}


def test_an_unlisted_variable_counts_only_if_it_names_a_provider() -> None:
    environ = {
        "MYAPP_LLM_BASE_URL": "https://api.deepseek.com/v1",
        "APP_BASE_URL": "http://localhost:3000",
        "SHOP_API_URL": "https://shop.example/api",
    }
    variables = base_url_variables(environ, 8080)
    assert variables["MYAPP_LLM_BASE_URL"] == "http://127.0.0.1:8080/api.deepseek.com/v1"
    assert "APP_BASE_URL" not in variables
    assert "SHOP_API_URL" not in variables


@pytest.mark.parametrize(
    ("value", "routed"),
    [
        ("http://bob:s3cret@gw.example/v1", "http://bob:s3cret@127.0.0.1:8080/http:gw.example/v1"),
        ("https://bob:p@ss@gw.example:8443", "http://bob:p@ss@127.0.0.1:8080/gw.example:8443"),
        ("https://gw.example/v1?api-version=2024", "http://127.0.0.1:8080/gw.example/v1?api-version=2024"),
        ("https://gw.example?key=a&b=%20", "http://127.0.0.1:8080/gw.example?key=a&b=%20"),
        ("https://gw.example/v1#part", "http://127.0.0.1:8080/gw.example/v1#part"),
        ("https://gw.example/a%2Fb/v1/", "http://127.0.0.1:8080/gw.example/a%2Fb/v1/"),
        ("HTTPS://GW.example/V1", "http://127.0.0.1:8080/gw.example/V1"),
        ("https://gw.example:443/v1", "http://127.0.0.1:8080/gw.example/v1"),
        ("http://gw.example:443/v1", "http://127.0.0.1:8080/http:gw.example:443/v1"),
        ("https://gw.example:/v1", "http://127.0.0.1:8080/gw.example/v1"),
        ("http://[::1]:9000/v1", "http://127.0.0.1:8080/[::1]:9000/v1"),
        ("https://[2001:db8::7]/v1", "http://127.0.0.1:8080/[2001:db8::7]/v1"),
        ("http://[::ffff:127.0.0.1]:9000", "http://127.0.0.1:8080/[::ffff:127.0.0.1]:9000"),
        ("https://b\u00fccher.example/v1", "http://127.0.0.1:8080/xn--bcher-kva.example/v1"),
        (" https://gw.example/v1 ", " http://127.0.0.1:8080/gw.example/v1 "),
        ('"https://gw.example/v1"', '"http://127.0.0.1:8080/gw.example/v1"'),
        ("https://gw.example/${TENANT}/v1", "http://127.0.0.1:8080/gw.example/${TENANT}/v1"),
    ],
)
def test_only_the_origin_of_a_base_url_is_replaced(value: str, routed: str) -> None:
    for offline in (False, True):
        variables = base_url_variables({"OPENAI_BASE_URL": value}, 8080, offline=offline)
        assert variables["OPENAI_BASE_URL"] == routed
        assert variables["OPENAI_API_BASE"] == routed  # which some clients read first


@pytest.mark.parametrize(
    "value",
    [
        "gw.example/v1",
        "localhost:11434",
        "not a url",
        "${GATEWAY}",
        "https://${GATEWAY}/v1",
        "{{ base_url }}",
        "unix:///run/gw.sock",
        "http+unix://%2Frun%2Fgw.sock/v1",
        "ftp://gw.example",
        "https:gw.example",
        "https:\\\\gw.example",
        "https://",
        "https:///v1",
        "https://gw.example:0",
        "https://gw.example:99999/v1",
        "https://gw.example:port/v1",
        "https://bob:se/cret@gw.example/v1",
        "https://bob@",
        "https://gw example/v1",
        "http://[::1/v1",
        "http://[fe80::1%25eth0]:8080/v1",
        "https://" + "\u00fc" * 80 + ".example",
    ],
)
def test_a_value_that_cannot_be_routed_never_becomes_another_host(value: str) -> None:
    recorded = base_url_variables({"OPENAI_BASE_URL": value, "OLLAMA_BASE_URL": value}, 8080)
    assert not {"OPENAI_BASE_URL", "OPENAI_API_BASE", "OLLAMA_BASE_URL"} & set(recorded)
    assert recorded["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8080/api.anthropic.com"
    assert unroutable_base_urls({"OPENAI_BASE_URL": value}) == {"OPENAI_BASE_URL": value}
    assert default_routes({"OPENAI_BASE_URL": value}).get("api.openai.com") is None
    replayed = base_url_variables({"OPENAI_BASE_URL": value, "OLLAMA_BASE_URL": value}, 8080, offline=True)
    assert replayed["OPENAI_BASE_URL"] == "http://127.0.0.1:8080/api.openai.com/v1"
    assert replayed["OLLAMA_BASE_URL"] == "http://127.0.0.1:8080"


def test_a_value_that_cannot_be_routed_is_kept_beside_one_that_can() -> None:
    own = {"OPENAI_BASE_URL": "${GATEWAY}", "OPENAI_API_BASE": "https://gw.example/v1"}
    variables = base_url_variables(own, 8080)
    assert "OPENAI_BASE_URL" not in variables
    assert variables["OPENAI_API_BASE"] == "http://127.0.0.1:8080/gw.example/v1"


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_value_counts_as_none(value: str) -> None:
    variables = base_url_variables({"OPENAI_BASE_URL": value}, 8080)
    assert variables["OPENAI_BASE_URL"] == "http://127.0.0.1:8080/api.openai.com/v1"


def test_user_info_is_not_shown() -> None:
    assert without_user(" https://bob:p@ss@gw.example/v1") == " https://…@gw.example/v1"
    assert without_user("https://gw.example/v1") == "https://gw.example/v1"


def test_a_value_that_leads_to_us_already_stays() -> None:
    own = "http://127.0.0.1:8080/api.deepseek.com"
    assert base_url_variables({"DEEPSEEK_BASE_URL": own}, 8080)["DEEPSEEK_BASE_URL"] == own


@pytest.mark.parametrize(
    "url", ["api.x.ai", "ftp://x.ai", "https://", "https://u@x.ai", "https://x.ai?a=b", "https://x:y/"]
)
def test_a_bad_upstream_is_named(url: str) -> None:
    assert base_url_problem(url)


def test_a_good_upstream_is_no_problem() -> None:
    assert base_url_problem("https://api.deepseek.com/v1") is None


def test_every_variable_that_is_set_is_documented() -> None:
    page = (Path(__file__).parents[4] / "docs" / "recording.md").read_text(encoding="utf-8")
    names = {
        *DEFAULT_BASE_URLS,
        *REPLACING,
        *ADDING,
        PHP_SETTINGS,
        *(name for name in proxy_variables(1) if name.isupper()),
    }
    assert [name for name in sorted(names) if f"`{name}" not in page] == []


def test_variables_of_one_provider_follow_the_one_that_the_user_set() -> None:
    variables = base_url_variables({"OPENAI_BASE_URL": "https://api.deepseek.com/v1"}, 8123)
    assert variables["OPENAI_BASE_URL"] == "http://127.0.0.1:8123/api.deepseek.com/v1"
    assert variables["OPENAI_API_BASE"] == "http://127.0.0.1:8123/api.deepseek.com/v1"
    assert variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8123/api.anthropic.com"


def test_variables_of_one_provider_that_are_both_set_keep_their_values() -> None:
    own = {"OPENAI_BASE_URL": "https://api.deepseek.com/v1", "OPENAI_API_BASE": "https://openrouter.ai/api/v1"}
    variables = base_url_variables(own, 8123)
    assert variables["OPENAI_BASE_URL"].endswith("/api.deepseek.com/v1")
    assert variables["OPENAI_API_BASE"].endswith("/openrouter.ai/api/v1")
