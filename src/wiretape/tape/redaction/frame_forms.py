"""Reads the strings of a stream's frames without parsing each frame: most are built like one before, strings apart."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

_MOST_FORMS = 16  # that differ in names or types only


class Leaf(NamedTuple):
    """One string of a frame's JSON: the `ordinal`-th string in it, names counted too."""

    frame: int
    ordinal: int
    text: str


class Form(NamedTuple):
    """How a frame is built, apart from its strings' values: the next of its kind need not be parsed."""

    names: tuple[str, ...]
    names_of: Callable[[list[str]], tuple[str, ...]]
    values_of: Callable[[list[str]], tuple[str, ...]]
    places: tuple[tuple[int, list[Leaf]], ...]  # for each value: its ordinal, and its channel's leaves
    kind: tuple[int, str] | None  # which value is the root's `type`, and what it is: it tells channels apart


class Forms:
    """The forms of the frames so far. A stream has a few, and hundreds of frames of each."""

    def __init__(self) -> None:
        self._forms: dict[str, list[Form]] = {}

    def read(self, frame: int, body: str) -> bool:
        """Note the strings of a frame whose form is known; False if it must be parsed."""
        if "\\" in body:
            return False
        parts = body.split('"')  # strings stand at odd places
        for form in self._forms.get('"'.join(parts[::2]), ()):
            if form.names_of(parts) == form.names:
                values = form.values_of(parts)
                if form.kind and values[form.kind[0]] != form.kind[1]:
                    continue
                for (ordinal, leaves), text in zip(form.places, values, strict=True):
                    leaves.append(Leaf(frame, ordinal, text))
                return True
        return False

    def learn(self, body: str, noted: list[tuple[int, list[Leaf]]], kind: tuple[int, str] | None) -> None:
        """Remember the form of a frame that was parsed. `noted`: its string values."""
        if "\\" in body or not noted:
            return
        parts = body.split('"')
        values = [2 * ordinal + 1 for ordinal, _ in noted]
        names = sorted(set(range(1, len(parts), 2)) - set(values))
        if len(names) < 2 or len(values) < 2:
            return
        names_of, values_of = itemgetter(*names), itemgetter(*values)
        form = Form(names_of(parts), names_of, values_of, tuple(noted), kind)
        known = self._forms.setdefault('"'.join(parts[::2]), [])
        if len(known) < _MOST_FORMS:
            known.append(form)
