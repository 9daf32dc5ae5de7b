"""Views of a run's tallies."""

__all__ = ["analysis", "tools", "totals"]
