"""The debugger's screen (extra `tui`).

Only this package imports textual. Its state is that of `debug.session.Debugger`.
"""

__all__ = ["app"]
