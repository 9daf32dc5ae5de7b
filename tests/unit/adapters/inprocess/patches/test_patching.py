"""What stands behind the doors is taken back, or left where another tool has patched above it."""

from __future__ import annotations

import functools
import http.client
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from wiretape.adapters.inprocess.patches.patching import apply_patches, remove_patches

Wrap = Callable[[Any], Any]
KIND = http.client.HTTPConnection


def by_closure(found: Any) -> Any:
    def send(conn: Any, data: Any) -> None:
        found(conn, data)

    return send


def by_default(found: Any) -> Any:
    def send(conn: Any, data: Any, found: Any = found) -> None:
        found(conn, data)

    return send


class Proxy:
    """As wrapt's, whose wrappers are objects: what a class gives for one is to be called."""

    def __init__(self, found: Any) -> None:
        self._found = found

    @property
    def __wrapped__(self) -> Any:
        return self._found

    def __get__(self, conn: Any, owner: Any = None) -> Any:
        return self._found.__get__(conn, owner)


@pytest.fixture
def stood() -> Iterator[Any]:
    found = vars(KIND)["send"]
    yield found
    KIND.send = found  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "wrap", [by_closure, by_default, Proxy, functools.partial, lambda found: Proxy(by_closure(found))]
)
def test_what_a_tool_has_wrapped_is_put_there_once_and_taken_back_when_it_has_gone(wrap: Wrap, stood: Any) -> None:
    apply_patches()
    ours = vars(KIND)["send"]
    assert ours is not stood
    KIND.send = above = wrap(ours)
    remove_patches()
    apply_patches()
    assert vars(KIND)["send"] is above
    KIND.send = ours  # type: ignore[method-assign]
    remove_patches()
    assert vars(KIND)["send"] is stood


def test_what_a_tool_has_replaced_is_patched_anew(stood: Any) -> None:
    def nothing(conn: Any, data: Any) -> None:
        """As a mock: it goes no further."""

    apply_patches()
    KIND.send = nothing  # type: ignore[method-assign]
    remove_patches()
    apply_patches()
    assert vars(KIND)["send"] is not nothing
    remove_patches()
    assert vars(KIND)["send"] is nothing


def test_a_wrapper_that_was_there_before_is_called_as_its_class_gives_it(stood: Any) -> None:
    """OpenTelemetry's instruments are of wrapt."""
    sent: list[bytes] = []
    connection: Any = http.client.HTTPConnection("models.example")
    connection.sock = SimpleNamespace(sendall=sent.append, close=list)
    KIND.send = before = Proxy(stood)  # type: ignore[method-assign,assignment]
    apply_patches()
    connection.send(b"asked")
    remove_patches()
    assert sent == [b"asked"]
    assert vars(KIND)["send"] is before
