"""The recording proxy, on mitmproxy."""
