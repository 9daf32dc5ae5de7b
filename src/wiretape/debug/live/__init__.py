"""Stepping through a program that is still running."""
