"""Starts a program behind wiretape: presets, variables, certificates."""
