"""The command `debug`, on a tape or on a running program."""

__all__: list[str] = []
