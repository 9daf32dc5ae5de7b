"""Commands that run a program or a scheduler: record, replay, fork, rerun, demo."""

__all__ = ["demo", "fork", "record", "replay", "rerun"]
