"""Exporters: HAR, and those that other packages register in the entry-point group `wiretape.exporters`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Protocol, cast

from wiretape import _plugins
from wiretape.tape.reading.reader import Tape

FORMATS = ("har",)


class Exporter(Protocol):
    """Writes a tape in another tool's format. A plug-in's entry point is named as its `--format`."""

    def export(self, tape: Tape) -> Iterable[bytes]:
        """The bytes of the file, in pieces."""
        ...


def exporter(name: str) -> Exporter:
    """The exporter of a format."""
    if name == "har":
        return cast(Exporter, importlib.import_module("wiretape.adapters.exporters.har"))  # start-up time
    return plugins()[name]


def plugins() -> dict[str, Exporter]:
    """The exporters of installed plug-ins, by name."""
    return _plugins.usable(_plugins.EXPORTERS, FORMATS)
