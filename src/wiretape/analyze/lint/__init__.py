"""Lint rules: faults in an agent's loop."""

__all__ = ["base", "rules"]
