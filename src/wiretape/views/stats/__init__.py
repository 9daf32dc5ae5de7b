"""Views of the sums of a run."""

__all__ = ["analysis", "tools", "totals"]
