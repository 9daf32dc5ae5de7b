"""Compares a tape with a later recording of the same program."""
