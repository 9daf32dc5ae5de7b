"""Provider formats: bytes to blocks. Nothing here reads, waits or logs."""

__all__ = [
    "base",
    "call_frame",
    "lenient",
    "mcp",
    "next_request",
    "openai",
    "payload",
    "recognition",
    "registry",
    "sse",
    "tool_lists",
]
