"""Recorded and in-memory sockets below the patches."""

__all__ = ["http1_sockets", "httpx_sockets", "socket_server", "taps"]
