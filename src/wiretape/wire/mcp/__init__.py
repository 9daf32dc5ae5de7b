"""MCP: tool calls as JSON-RPC exchanges, and wrapped tools as MCP spells them."""

__all__ = ["tool_exchange", "traffic"]
