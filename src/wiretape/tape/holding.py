"""How much of a text that is still coming may be written: a secret split over two chunks must not reach the disk.

What is held back is the end of the text so far, from where a secret may have begun: the run of characters at the end
that keys and tokens are made of. Text that ends with a space, a quote, a bracket or a line end (server-sent events
do) is written at once. The run is never longer than the longest secret can be.
"""

from __future__ import annotations

_ENDS = b" \t\r\n\"'`<>(){}[],;|\\"
_TOKEN = bytes(byte for byte in range(33, 127) if byte not in _ENDS)


def safe_length(text: bytes, longest: int) -> int:
    """How many leading bytes no secret that goes on in the next chunk can touch."""
    window = text[-longest:]
    return len(text) - len(window) + len(window.rstrip(_TOKEN))
