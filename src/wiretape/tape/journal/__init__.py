"""The journal beside a tape: open exchanges, and their recovery after a crash."""
