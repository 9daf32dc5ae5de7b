"""Lint: rules that look for what is wrong with an agent's loop. One small class each, listed in `rules.py`."""
