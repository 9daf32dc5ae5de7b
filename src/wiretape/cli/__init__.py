"""The command line: one module for each command; `main` wires them."""

__all__ = ["main"]
