"""Updates a tape: keeps what still matches, records the rest."""

__all__ = ["session", "staging"]
