"""Views of replays, updates, reruns and forks."""

__all__ = ["fork", "freshness", "rerun", "summary", "update"]
