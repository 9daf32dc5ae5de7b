"""Use cases that commands and the pytest plugin share: functions with an options dataclass."""

__all__ = [
    "call_tags",
    "fork",
    "fork_changes",
    "record",
    "recording_server",
    "replay",
    "rerun",
    "signals",
    "update",
    "verify",
]
