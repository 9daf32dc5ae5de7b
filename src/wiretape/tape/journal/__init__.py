"""The journal of a tape: open exchanges, and their recovery after a crash."""

__all__ = ["draft", "journal", "recovery", "searched_bytes", "stream_end"]
