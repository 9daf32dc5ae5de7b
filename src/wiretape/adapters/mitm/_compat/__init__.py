"""Patches of mitmproxy's private parts, with the versions they were seen with."""

__all__ = ["chunks", "fixes", "held_answers"]
