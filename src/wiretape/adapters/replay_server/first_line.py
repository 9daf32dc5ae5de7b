"""Gets requests with methods of any name past a parser that knows a list of them only."""

from __future__ import annotations

import re

_USUAL = (b"POST ", b"GET ", b"PUT ", b"PATCH ", b"DELETE ", b"HEAD ", b"OPTIONS ", b"CONNECT ", b"TRACE ")
_STAND_IN = b"POST"  # frames its body as any method does
_LONGEST = 64
_BEGUN = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_METHOD = re.compile(_BEGUN.pattern + rb"(?= )")


class FirstLine:
    """The beginning of one request. `method`: what it really says, where another name was put in its place."""

    __slots__ = ("_held", "method")

    def __init__(self) -> None:
        self.method = ""
        self._held = b""

    @property
    def holds(self) -> bool:
        """Whether some of it came that the parser was not given yet."""
        return bool(self._held)

    def known(self, data: bytes) -> bytes:
        """What the parser is given: the data with a method that it knows; nothing while the method is not whole."""
        if data.startswith(_USUAL) and not self._held:
            return data
        data, self._held = self._held + data, b""
        if data.startswith(_USUAL):
            return data
        if len(data) < _LONGEST and _BEGUN.fullmatch(data):
            self._held = data
            return b""
        found = _METHOD.match(data)
        if found is None:
            return data  # no request: the parser says so
        self.method = found[0].decode("ascii")
        return _STAND_IN + data[found.end() :]
