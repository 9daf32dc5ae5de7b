"""Makes a tape of other tapes: cut, merge, redact, replace exchanges."""

__all__ = ["branches", "edit", "secrets", "splice"]
