"""The debugger's pure state: positions in a run, the moves between them, breakpoints, and every command, as data.

Nothing here reads, waits or prints, and nothing judges: what other layers know (why a call was made, findings, cache
verdicts, drift) is handed in as `Known`. A screen, line mode and scripts share one front: `session.Debugger`, whose
`execute(line)` gives a `replies.Reply` that the views render.
"""
