"""The command line: one file per command; `main` only wires them."""
