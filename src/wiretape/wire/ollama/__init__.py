"""The wire formats of Ollama's own API."""

__all__ = ["chat", "messages"]
