"""Views of the debugger's replies."""

__all__ = ["place", "reply"]
