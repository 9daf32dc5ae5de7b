"""Holds a run to limits, and to an older run."""

__all__ = ["baseline", "incomplete", "judging", "report", "spelling"]
