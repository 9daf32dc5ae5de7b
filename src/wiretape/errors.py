"""Every error that wiretape raises on purpose.

    WiretapeError                     the command line prints its message and exits with `exit_code`
      UsageError                      an argument, option or setting cannot be used (a port in use, a bad option)
      TapeError                       a tape cannot be read or written
        NotATape                      the file is empty, or not a tape
        TapeTooNew                    written by a newer version of wiretape
        TapeDamaged                   a document inside is broken; names file and line
        TapeUnwritable                no permission, disk full, directory missing
        TapeTooOld                    older than `max_age`, with `max_age_action="fail"`
      WireError                       bytes that violate their wire format
      MissError                       raised when a replay session closes with misses
      ToolError                       the error of a recorded tool whose own exception class is unavailable
      NetworkRefused                  a blocked connection of a test that runs from its tape; also an OSError
    MissInterrupt                     a miss in process with on_miss="raise"; a BaseException

Each message names the culprit, the difference and the next step.
"""

from __future__ import annotations

from typing import Final

EXIT_INCOMPLETE: Final = 4  # a command's exit code: something that was to be recorded is not on the tape


class WiretapeError(Exception):
    """Base of all errors that users see."""

    exit_code = 2


class UsageError(WiretapeError):
    """An argument, option or setting cannot be used."""


class TapeError(WiretapeError):
    """A tape cannot be read or written."""


class NotATape(TapeError):
    """The file is empty or is not a tape."""


class TapeTooNew(TapeError):
    """The tape was written by a newer version of wiretape."""


class TapeDamaged(TapeError):
    """A document inside the tape is broken."""


class TapeUnwritable(TapeError):
    """The tape cannot be written: no permission, no such directory, disk full."""


class TapeTooOld(TapeError):
    """The tape is older than `max_age`, and `max_age_action` is "fail"."""


class WireError(WiretapeError):
    """Bytes that violate their wire format."""


class MissError(WiretapeError):
    """A replay session closed with live requests that no recorded one answered."""

    exit_code = 3


class ToolError(WiretapeError):
    """The error of a recorded tool whose own exception class is unavailable."""


class NetworkRefused(WiretapeError, ConnectionRefusedError):
    """A blocked connection or name lookup of a test that runs from its tape."""


class MissInterrupt(BaseException):
    """A miss in process with `on_miss="raise"`.

    It is a BaseException, like KeyboardInterrupt, because SDKs catch `Exception` and retry.
    """
