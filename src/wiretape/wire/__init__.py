"""Provider formats: bytes to blocks. Nothing here reads, waits or logs."""

__all__ = [
    "anthropic",
    "base",
    "bedrock",
    "cohere",
    "decoding",
    "gemini",
    "lenient",
    "mcp",
    "ollama",
    "openai",
    "payload",
    "recognition",
    "registry",
    "sse",
]
