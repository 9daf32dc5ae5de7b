"""The wire formats of Ollama's own API."""
