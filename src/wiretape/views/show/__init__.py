"""Views of a tape, a call or an exchange."""

__all__ = ["call", "exchange", "show_json", "tape", "tape_list"]
