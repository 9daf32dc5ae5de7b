"""The wire formats of Google's Gemini: generateContent and Interactions."""
