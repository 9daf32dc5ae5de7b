import pytest

from wiretape.adapters.routing.upstream_proxy import UpstreamProxy, upstream_proxy


def proxy(**environ: str) -> UpstreamProxy:
    found, problem = upstream_proxy(environ)
    assert problem is None
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "mode"),
    [
        ("http://proxy.corp.example:3128", "upstream:http://proxy.corp.example:3128"),
        ("proxy.corp.example:3128", "upstream:http://proxy.corp.example:3128"),
        ("https://proxy.corp.example", "upstream:https://proxy.corp.example:443"),
        ("http://proxy.corp.example/", "upstream:http://proxy.corp.example:80"),
    ],
)
def test_the_users_proxy_is_chained(value: str, mode: str) -> None:
    assert proxy(HTTPS_PROXY=value).mode == mode
    assert proxy(all_proxy=value).mode == mode


def test_its_credentials_are_kept_apart() -> None:
    found = proxy(https_proxy="http://me:p%40ss@proxy.corp.example:3128")
    assert found.auth == "me:p@ss"
    assert "p@ss" not in found.mode + found.name
    assert proxy(https_proxy="http://proxy.corp.example:3128").auth is None


def test_without_one_there_is_none() -> None:
    assert upstream_proxy({"HTTPS_PROXY": ""}) == (None, None)


@pytest.mark.parametrize("value", ["socks5://localhost:1080", "http://:1", "http://proxy:99999"])
def test_one_that_cannot_be_chained_is_told(value: str) -> None:
    found, problem = upstream_proxy({"HTTPS_PROXY": value})
    assert found is None
    assert problem is not None
    assert "hosts are reached without it" in problem


def test_no_proxy_names_what_is_reached_directly() -> None:
    found = proxy(HTTPS_PROXY="http://proxy:3128", NO_PROXY=".corp.example, *.lab, 10.0.0.7,plain:8080")
    for host in ("llm.corp.example", "corp.example", "gpu.lab", "10.0.0.7", "plain", "localhost", "127.0.0.1", "[::1]"):
        assert found.is_direct(host), host
    for host in ("api.openai.com", "notcorp.example", "10.0.0.70"):
        assert not found.is_direct(host), host
    assert proxy(HTTPS_PROXY="http://proxy:3128", NO_PROXY="*").is_direct("api.openai.com")


def test_a_connect_to_a_direct_host_is_seen_by_its_first_bytes() -> None:
    found = proxy(HTTPS_PROXY="http://proxy:3128", NO_PROXY="corp.example")
    assert found.goes_around(b"CONNECT llm.corp.example:443 HTTP/1.1\r\n")
    assert found.goes_around(b"CONNECT [::1]:443 HTTP/1.1\r\n")
    assert not found.goes_around(b"CONNECT api.openai.com:443 HTTP/1.1\r\n")
    assert not found.goes_around(b"CONNECT ")
