"""The wire formats of Google's Gemini: generateContent and Interactions."""

__all__ = ["generate", "interactions"]
