"""Changes one call of a recorded run and continues from there."""

__all__ = ["answer_edit", "fork"]
