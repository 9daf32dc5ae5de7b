"""Provider formats: bytes to blocks. Nothing here reads, waits or logs."""

__all__ = ["base", "call_frame", "lenient", "mcp", "next_request", "openai", "recognition", "registry", "tool_lists"]
