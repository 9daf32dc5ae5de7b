"""Frozen values that every layer shares: exchanges, model calls, runs."""

__all__ = [
    "call",
    "common_prefix",
    "faults",
    "framing",
    "header_links",
    "http",
    "jsonvalue",
    "jsonwalk",
    "run",
    "stream_text",
    "volatile_text",
    "wording",
]
