"""Every error that wiretape raises on purpose, on one page.

    WiretapeError                     shown to a person as one clear line; the CLI exits with `exit_code`
      UsageError                      what was asked for cannot be done as asked (a port in use, a bad option)
      TapeError                       a tape cannot be read or written
        NotATape                      the file is something else, or empty
        TapeTooNew                    written by a newer wiretape
        TapeDamaged                   a document inside is broken; names file and line
        TapeUnwritable                no permission, disk full, no such directory
        TapeTooOld                    older than `max_age` allows, where that was to fail
      WireError                       bytes that are not what their format promises
      MissError                       raised when a replay session closes with misses
      ToolError                       what a recorded tool raised, where its own class is not at hand
      NetworkRefused                  a connection that a test running from its tape must not open; an OSError, too
    MissInterrupt                     a miss in process with on_miss="raise"; no Exception, so that nothing swallows it

Each message names the culprit, the difference and the next step.
"""

from __future__ import annotations

from typing import Final

EXIT_INCOMPLETE: Final = 4  # a command's exit code: something that was to be recorded is not on the tape


class WiretapeError(Exception):
    """Base of all errors that a person may see."""

    exit_code = 2


class UsageError(WiretapeError):
    """What was asked for cannot be done as asked."""


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
    """Bytes that are not what their wire format promises."""


class MissError(WiretapeError):
    """A replay session closed with live requests that no recorded one answered."""

    exit_code = 3


class ToolError(WiretapeError):
    """Raised by a tool that a tape answers, in the place of what the real one raised when it was recorded."""


class NetworkRefused(WiretapeError, ConnectionRefusedError):
    """A connection, or the look-up of a name, outside the tape. Programs may take it for a refused connection."""


class MissInterrupt(BaseException):
    """Raised at the call that no recorded one answers, where `on_miss="raise"` asked for it.

    SDKs catch `Exception` and try again. Like KeyboardInterrupt, this one goes past them.
    """
