"""Links in response headers: a client on a base-URL route stays on it."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.adapters.routing.route_links import Route
from wiretape.adapters.routing.routes import route_path, route_url
from wiretape.model.header_links import LINK_HEADERS

ORIGIN = "http://127.0.0.1:8080"
URL = "https://gw.example/v1/jobs/7"
ROUTE = Route(ORIGIN, route_path(URL), URL)
OURS = f"{ORIGIN}/gw.example"


def kept(name: str, value: str, route: Route = ROUTE) -> tuple[str, list[str]]:
    made = route.keep([(name, value)], lambda host, port: (host, port) == ("api.openai.com", 443))
    return made.headers[0][1], made.foreign


@pytest.mark.parametrize(
    ("reference", "now"),
    [
        ("https://gw.example/v1/jobs/7/", f"{OURS}/v1/jobs/7/"),
        ("https://GW.example:443/v1/x?a=b%20c#d", f"{OURS}/v1/x?a=b%20c#d"),
        ("http://gw.example/v1/x", f"{ORIGIN}/http:gw.example/v1/x"),  # behind a server that ends TLS
        ("https://api.openai.com/v1/x", f"{ORIGIN}/api.openai.com/v1/x"),  # routed
        ("//gw.example/v1/x", f"{OURS}/v1/x"),
        ("/v1/x", "/gw.example/v1/x"),
        ("/", "/gw.example/"),
        ("../../../../etc", "/gw.example/etc"),  # it would climb over the host
        ("8", "8"),
        ("7/", "7/"),
        ("?page=2", "?page=2"),
        ("../models", "../models"),
        ("", ""),
        ("mailto:a@gw.example", "mailto:a@gw.example"),
    ],
)
def test_a_link_to_the_upstream_stays_on_the_route(reference: str, now: str) -> None:
    for name in ("location", "Content-Location", "operation-location", "Azure-AsyncOperation"):
        assert kept(name, reference) == (now, [])
    there = route_url(urljoin(ORIGIN + route_path(URL), now).removeprefix(ORIGIN)) or ""
    if urlsplit(reference).scheme != "mailto":
        asked = urlsplit(urljoin(URL, reference))
        assert urlsplit(there)[1:4] == (asked.netloc.lower().removesuffix(":443"), asked.path, asked.query)


@pytest.mark.parametrize(
    "reference",
    [
        "https://cdn.example/blob",
        "//cdn.example/blob",
        "https://gw.example:8443/v1/x",
        "https://bob:secret@gw.example/v1/x",
        "https://gw.example/v1/blob?X-Amz-Signature=abc",
        "https://gw.example/v1/blob?se=1&sig=abc",
    ],
)
def test_a_foreign_or_signed_link_stays_as_it_is_and_is_named(reference: str) -> None:
    assert kept("location", reference) == (reference, [urljoin(URL, reference)])
    assert kept("content-location", reference) == (reference, [])  # nobody is sent there
    assert kept("link", f"<{reference}>; rel=help") == (f"<{reference}>; rel=help", [])


def test_links_inside_a_header_are_found() -> None:
    links = '<https://gw.example/v1?page=2>; rel="next", </v1>; rel=first, <https://cdn.example>; rel=help'
    assert kept("link", links)[0] == (
        f'<{OURS}/v1?page=2>; rel="next", </gw.example/v1>; rel=first, <https://cdn.example>; rel=help'
    )
    assert kept("refresh", "5; url=https://gw.example/v1") == (f"5; url={OURS}/v1", [])
    assert kept("refresh", "0;URL='https://gw.example/v1'") == (f"0;URL='{OURS}/v1'", [])
    assert kept("refresh", "5") == ("5", [])
    assert kept("x-location", "https://gw.example/v1") == ("https://gw.example/v1", [])


def test_an_ipv6_upstream_keeps_its_brackets() -> None:
    route = Route("http://[::1]:8080", "/[::1]:9000/v1/x", "http://[::1]:9000/v1/x")
    assert kept("location", "http://[::1]:9000/v1/x/", route)[0] == "http://[::1]:8080/[::1]:9000/v1/x/"


def test_a_client_whose_path_names_no_host_gets_one_that_does() -> None:
    """As with --upstream, which adds a path of its own."""
    route = Route(ORIGIN, "/chat/7", "https://gw.example/beta/chat/7")
    assert kept("location", "8", route)[0] == "/gw.example/beta/chat/8"
    assert kept("location", "https://gw.example/beta/chat/8", route)[0] == f"{OURS}/beta/chat/8"


PIECES = "https: http: HTTPS: // / \\ evil.example gw.example @ :9000 [::1] [ ? # .. a %2F user:pw : ; ${X} 127.0.0.1"
REFERENCES = st.builds("".join, st.lists(st.sampled_from([*PIECES.split(), " ", "\t", "\u00e9"]), max_size=8))


@given(REFERENCES, st.sampled_from(sorted(LINK_HEADERS - {"link", "refresh"})))
def test_in_a_replay_no_link_leads_anywhere_else(reference: str, name: str) -> None:
    """As a client of Python's reads it, and as one that takes a backslash for a slash."""
    value = ROUTE.close([(name, reference)])[0][1]
    for read in (value, value.replace("\\", "/")):
        try:
            target = urlsplit(urljoin(ORIGIN + route_path(URL), read.strip()))
        except ValueError:
            continue
        if target.scheme in ("http", "https"):
            assert f"{target.scheme}://{target.netloc}" == ORIGIN, value
