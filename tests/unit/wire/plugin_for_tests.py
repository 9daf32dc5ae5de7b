"""A wire format as a plug-in registers it."""

from __future__ import annotations

from typing import ClassVar

from wiretape.wire.openai.chat import OpenAIChat


class Quiet(OpenAIChat):
    name: ClassVar[str] = "quiet"
