"""The only code that waits, listens or connects: thin translators."""
