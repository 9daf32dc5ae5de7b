"""The recording proxy, on mitmproxy."""

__all__ = ["addon", "ca", "live", "proxy", "replay_tls", "tls_interception", "updating"]
