"""The replay server and its forward proxy, on loopback ports."""

__all__ = ["forward_proxy", "server"]
