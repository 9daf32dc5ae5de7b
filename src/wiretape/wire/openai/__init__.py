"""The wire formats of OpenAI: Chat Completions, Completions and Responses."""

__all__ = [
    "chat",
    "chat_messages",
    "chat_stream",
    "completions",
    "responses",
    "responses_socket",
    "responses_stored",
    "responses_stream",
]
