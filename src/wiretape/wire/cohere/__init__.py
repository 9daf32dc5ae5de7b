"""The wire format of Cohere's chat API."""

__all__ = ["chat", "chat_v1", "stream"]
