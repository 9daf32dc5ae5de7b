"""The version of wiretape, for modules below the public face."""

__version__ = "0.1.0"
