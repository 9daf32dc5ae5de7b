"""The wire format of Anthropic's Messages API."""

__all__ = ["messages", "next_request", "stream"]
