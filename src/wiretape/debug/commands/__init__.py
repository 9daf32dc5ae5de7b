"""Every command of the debugger, as data."""

__all__ = ["completion", "registry", "topics"]
