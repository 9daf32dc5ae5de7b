"""Commands that write tapes from tapes: cut, merge, redact."""

__all__: list[str] = []
