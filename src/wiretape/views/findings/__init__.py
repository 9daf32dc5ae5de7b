"""Views of judgements: cache, budgets, lint findings, differences of runs."""
