"""Changes one call of a recorded run and continues from there."""
