"""Views of a run's tallies."""
