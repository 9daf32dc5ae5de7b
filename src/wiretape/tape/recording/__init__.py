"""The Recorder: writes exchanges to a tape while they happen."""

__all__ = ["header_cache", "recorder"]
