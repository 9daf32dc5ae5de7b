"""Updates a tape: keeps the answers that still match, and records the rest."""

__all__ = ["session", "staged_recording", "updated_tape", "updating_replay", "write_updated"]
