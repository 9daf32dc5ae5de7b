"""The wire formats of OpenAI: Chat Completions, Completions and Responses."""

__all__ = [
    "chat",
    "chat_messages",
    "chat_next_request",
    "chat_stream",
    "completions",
    "responses",
    "responses_frames",
    "responses_held",
    "responses_polls",
    "responses_socket",
]
