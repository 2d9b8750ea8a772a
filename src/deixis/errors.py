"""The errors Deixis raises for things a user can put right.

The command line prints the message of a :class:`DeixisError` in one line and leaves with exit code 2; anything else is
a bug and shows its traceback. A message names the offending value and the way out.
"""

from __future__ import annotations

from typing import ClassVar


class DeixisError(Exception):
    """Something the user handed us cannot be used; the message says what and how to mend it."""

    exit_code: ClassVar[int] = 2


class BadFileError(DeixisError):
    """A file is missing, damaged or not what it should be."""


class BadRecipeError(DeixisError):
    """A recipe or an override has a key or a value that cannot be used."""


class TooFewError(DeixisError):
    """There are too few photos or words to fit or measure something; what does not need it can go on."""


class LostProcessError(DeixisError):
    """Another process of the same run has ended; what that one said is the cause, this only follows from it."""

    exit_code = 3
    """Seen by the launcher; ours leaves with 2."""


class MissingExtraError(DeixisError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, package: str, extra: str, what: str) -> None:
        super().__init__(f"{what} needs the package '{package}', which is not installed: pip install 'deixis[{extra}]'")
