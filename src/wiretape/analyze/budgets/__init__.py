"""Budgets: limits that a run is held to, and another run that it must not be worse than."""
