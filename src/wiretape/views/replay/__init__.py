"""Views of replays, updates, reruns and forks."""
