"""Small agents, and a scripted model that answers them.

The agents are ordinary programs that do not import wiretape; the demo and the captures record them. Run one with
`python -m wiretape.demo.subagents`, and the model that it calls with `python -m wiretape.demo.upstream`.
"""

__all__ = ["subagents", "upstream"]
