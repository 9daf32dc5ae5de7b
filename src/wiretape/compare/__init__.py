"""States differences between JSON values, requests and tool calls."""
