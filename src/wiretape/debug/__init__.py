"""The debugger's pure state: positions in a run, moves and breakpoints.

Nothing here reads, waits or prints, and nothing judges: what other layers know (why a call was made, findings, cache
verdicts, drift) is handed in as `Known`. A screen, line mode and scripts share one front: `session.Debugger`, whose
`execute(line)` gives a `replies.Reply` that the views render.
"""

__all__ = [
    "annotated_run",
    "annotations",
    "breakpoints",
    "commands",
    "context",
    "detail",
    "difference",
    "expression",
    "figures",
    "live",
    "notes",
    "outline",
    "replies",
    "session",
    "streamed",
    "timeline",
]
