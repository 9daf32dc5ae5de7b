"""The replay server and its forward proxy, on loopback ports."""
