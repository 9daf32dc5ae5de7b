"""Monkeypatches of HTTP libraries, one module for each library."""
