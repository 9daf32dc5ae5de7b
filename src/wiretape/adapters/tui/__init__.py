"""The debugger's screen (extra `tui`): the tree on the left, the chosen step on the right, a command line below.

Only this package imports textual. It holds nothing of its own but what it shows: the state is `debug.Debugger`'s.
"""
