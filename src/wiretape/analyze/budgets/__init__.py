"""Compares a run with limits, and with an older run."""

__all__ = ["amounts", "baseline", "judging", "report"]
