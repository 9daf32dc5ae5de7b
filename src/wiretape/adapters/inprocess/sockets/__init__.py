"""Recorded and in-memory sockets below the patches."""

__all__ = ["http1_sockets", "network_streams", "socket_server", "taps"]
