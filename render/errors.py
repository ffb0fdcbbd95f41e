"""The short tree of exceptions.

UserError        a person's mistake: printed as one line, without a traceback, exit code 2
  ConfigError    a setting is wrong: names file, table, key and what is allowed
  SetupError     something the program needs is missing on this machine: says what to install
FarmError        the render farm cannot go on (no browser starts at all)

A sketch's own failure is never an exception: it is a Painting with an outcome (see painting.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable


class UserError(Exception):
    """A mistake that a person can mend; its text is one clear line. Empty: another process has said it."""


class ConfigError(UserError):
    """A setting is unknown, of the wrong type or out of bounds."""


class SetupError(UserError):
    """A program or package that is needed is not installed."""


class FarmError(Exception):
    """No browser of the farm can be started or kept alive."""


def say_error(error: Exception) -> None:
    """One line on standard error, unless another process has said it."""
    if str(error):
        print(f"error: {error}", file=sys.stderr)


def exit_code(work: Callable[[], int], interrupted: str) -> int:
    """What work() returns; 2 for a UserError, 3 for a FarmError, 130 for Ctrl-C, each with one line on standard error.

    interrupted: the line for Ctrl-C.
    """
    try:
        return work()
    except (UserError, FarmError) as error:
        say_error(error)
        return 2 if isinstance(error, UserError) else 3
    except KeyboardInterrupt:
        print(interrupted, file=sys.stderr)
        return 130
