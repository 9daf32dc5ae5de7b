"""`--wiretape-mode=new` and `update`: how a test's tape is renewed."""

__all__ = ["keep", "mixed", "new_tape", "report"]
