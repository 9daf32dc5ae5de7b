"""The wire formats of Google's Gemini: generateContent and Interactions."""

__all__ = ["generate", "generate_stream", "interaction_steps", "interaction_stream", "interactions", "payload"]
