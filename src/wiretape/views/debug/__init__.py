"""Views of the debugger's replies."""
