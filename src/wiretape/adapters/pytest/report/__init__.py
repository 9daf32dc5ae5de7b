"""The texts that the plugin prints: failures, and the summary of a run."""

__all__ = ["failures", "summary", "updates"]
