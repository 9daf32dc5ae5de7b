"""Makes a tape of other tapes: cut, merge, redact, replace exchanges."""
