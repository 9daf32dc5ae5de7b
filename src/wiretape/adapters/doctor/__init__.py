"""What `wiretape doctor` checks."""
