"""wiretape: record what an LLM agent really sent over the wire, replay it exactly, and explain it."""

__version__ = "0.1.0"
