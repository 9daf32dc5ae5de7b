"""The values of `--format`: built-in formats, and those of installed plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click


class FormatChoice(click.Choice[str]):
    """A choice of formats. It loads the plug-ins only for a name that is not built in."""

    def __init__(self, built_in: Sequence[str], plugins: Callable[[], Iterable[str]]) -> None:
        super().__init__(built_in)
        self._plugins = plugins

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return super().convert(value, param, ctx)
        return click.Choice([*self.choices, *self._plugins()]).convert(value, param, ctx)
