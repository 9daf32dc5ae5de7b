"""The wire format of Anthropic's Messages API."""

__all__ = ["messages", "stream"]
