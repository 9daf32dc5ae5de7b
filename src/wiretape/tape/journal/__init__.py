"""The journal of a tape: open exchanges, and their recovery after a crash."""

__all__ = ["draft", "journal", "recovery", "redaction_cache", "stream_end"]
