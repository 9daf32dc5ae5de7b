"""Views of a tape, a call or an exchange."""
