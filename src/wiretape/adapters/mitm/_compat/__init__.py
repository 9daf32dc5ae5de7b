"""Patches of mitmproxy's private parts, with the versions they were seen with."""
