"""The wire formats of OpenAI: Chat Completions, Completions and Responses."""
