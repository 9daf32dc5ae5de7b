"""Every command of the debugger, as data."""
