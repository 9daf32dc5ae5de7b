"""Which hosts are recorded, and which route leads to them."""

__all__ = ["admission", "hosts", "route_links", "routes", "tool_route", "unset_routes", "upstream_proxy"]
