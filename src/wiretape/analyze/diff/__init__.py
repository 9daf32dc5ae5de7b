"""Compares two runs turn by turn and call by call."""

__all__ = ["alignment", "report", "runs"]
