"""The only code that waits, listens, connects or patches."""

__all__ = [
    "doctor",
    "editor",
    "exporters",
    "importers",
    "inprocess",
    "launch",
    "live",
    "mitm",
    "old_tape",
    "open_files",
    "output",
    "prices",
    "pytest",
    "replay_runner",
    "replay_server",
    "rerun",
    "routing",
    "settings",
    "tui",
    "update",
]
