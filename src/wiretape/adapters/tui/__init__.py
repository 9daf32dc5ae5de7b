"""The debugger's screen (extra `tui`).

Only this package imports textual. It holds nothing of its own but what it shows: the state is `debug.Debugger`'s.
"""

__all__ = ["app"]
