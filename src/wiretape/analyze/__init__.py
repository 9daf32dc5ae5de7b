"""Analyzes a run: sums, cost, causes, cache, lint, budgets, differences."""

__all__ = ["budgets", "cache", "cost", "diff", "lint", "report", "stats", "tool_costs", "totals", "why"]
