"""Which hosts are recorded, and which route leads to them."""
