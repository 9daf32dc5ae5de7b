"""Run every command on tapes with n and 4n of each thing, and fail where the time grows faster than the tape.

    python -m tests.torture.growth [--count N] [--only WORD]

Each command runs in a forked process, with wiretape loaded, and its CPU time is measured. The exponent of a path is
log(time of 4n / time of n) / log(4): 1 is linear, 2 is quadratic.
"""
