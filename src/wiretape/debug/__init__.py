"""The debugger's pure state: positions in a run, moves and breakpoints.

Nothing here waits or prints. The debugger gets causes, findings, cache verdicts and drift as `Annotations`, because it
does not import the layers that compute them. The screen, line mode and scripts call `session.Debugger.execute(line)`
and render the `replies.Reply` that it returns.
"""

__all__ = [
    "annotated_run",
    "annotations",
    "answer_stream",
    "breakpoints",
    "commands",
    "detail",
    "difference",
    "expression",
    "live",
    "outline",
    "replies",
    "session",
    "timeline",
]
