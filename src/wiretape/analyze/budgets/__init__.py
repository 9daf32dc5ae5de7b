"""Holds a run to limits, and to an older run."""

__all__ = ["amounts", "baseline", "judging", "report"]
