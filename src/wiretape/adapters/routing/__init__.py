"""Which hosts are recorded, and which route leads to them."""

__all__ = ["admission", "base_urls", "dummy_keys", "hosts", "route_links", "routes", "tool_route", "upstream_proxy"]
