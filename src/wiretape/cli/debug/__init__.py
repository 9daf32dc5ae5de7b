"""The command `debug`, on a tape or on a running program."""
