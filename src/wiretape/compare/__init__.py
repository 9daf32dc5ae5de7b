"""States differences between JSON values, requests and tool calls."""

__all__ = [
    "address",
    "canonical",
    "difference",
    "excerpt",
    "json_paths",
    "mask",
    "multipart",
    "normalize",
    "tool_results",
]
