"""A network namespace for a replayed program, with wiretape as its only exit."""

__all__ = ["network", "transparent_proxy"]
