"""Views of judgements: cache, budgets, lint findings, differences of runs."""

__all__ = ["cache", "check", "check_files", "diff", "lint"]
