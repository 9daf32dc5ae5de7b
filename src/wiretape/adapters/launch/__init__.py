"""Starts a program behind wiretape: presets, variables, certificates."""

__all__ = [
    "authority",
    "caught_program",
    "child",
    "config_discovery",
    "env_leaks",
    "preparing",
    "presets",
    "programs",
    "trust",
]
