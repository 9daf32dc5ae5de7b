"""Small agents, and a scripted model that answers them.

They are ordinary programs: nothing in them knows of wiretape. The demo and the captures are recordings of them.
Each runs on its own, e.g. `python -m wiretape.demo.subagents`; `…demo.upstream` is what they talk to.
"""

__all__ = ["subagents", "upstream"]
