"""MCP: tool calls as JSON-RPC exchanges, and wrapped tools as MCP spells them."""

__all__ = ["mcp", "tool_exchange"]
