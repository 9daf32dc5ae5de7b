"""Updates a tape: keeps what still matches, records the rest."""
