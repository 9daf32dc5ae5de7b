"""Commands that write tapes from tapes: cut, merge, redact."""
