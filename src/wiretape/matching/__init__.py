"""Compares live requests with recorded ones. Sans-IO: clocks are passed in, doors hold no logic."""
