"""What the plugin prints about failures and tapes."""

__all__ = ["fixes", "frames", "summary", "unanswered"]
