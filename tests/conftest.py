"""Plugins that some tests need: pytest wants them named at the top."""

pytest_plugins = ["pytester"]
