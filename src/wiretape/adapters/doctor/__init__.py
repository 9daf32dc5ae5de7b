"""What `wiretape doctor` checks."""

__all__ = ["checks", "program_checks", "tape_checks"]
