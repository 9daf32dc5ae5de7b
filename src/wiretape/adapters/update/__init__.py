"""Updates a tape: keeps the answers that still match, and records the rest."""

__all__ = ["placement", "session", "staged_recording", "updated_tape", "updating_replay"]
