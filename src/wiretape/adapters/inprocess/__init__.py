"""`wiretape.record` and `wiretape.replay` in this process."""
