"""`wiretape.record` and `wiretape.replay` in this process."""

__all__ = [
    "active_context",
    "api",
    "child_server",
    "context",
    "context_record",
    "context_replay",
    "exchange_recorder",
    "fork_channel",
    "network_guard",
    "patches",
    "tools",
]
