"""Judges a run: tallies, causes, findings."""

__all__ = ["budgets", "cache", "cost", "diff", "lint", "report", "stats", "tool_costs", "totals", "why"]
