"""Views of cache diagnoses, budgets, lint findings and differences of runs."""

__all__ = ["cache", "check", "check_files", "diff", "lint"]
