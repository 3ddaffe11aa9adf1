"""Where in the user's code the entries of a tape come from; looked up only for plans that are shown."""

import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

from tapesplit.errors import RuleError
from tapesplit.notes import note
from tapesplit.recording.tape import Entries, Tape

__all__ = ["LinedEntries", "note_line_without_rule", "users_line", "users_stack_level"]

_NOT_THE_USERS: Final = {"tapesplit", "autograd", "numpy"}


class LinedEntries(Entries):
    """Entries of a tape that note the line of code which was running when each was recorded.

    A look-up takes about a microsecond, more than recording a number.
    """

    def __init__(self, *, apart: bool = False) -> None:
        super().__init__(apart=apart)
        self.lines: list[str] = []

    def __iadd__(self, entry: Iterable[Any]) -> Self:  # type: ignore[misc] # no other sums are made
        """Append an entry and note the line that it comes from."""
        self.extend(entry)
        self.lines.append(users_line())
        return self


def users_line() -> str:
    """Return the line of the user's code that is running, as "file.py:12"; "" if there is none."""
    frame, _ = _users_frame()
    return f"{_file_name(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""


@lru_cache
def _file_name(path: str) -> str:
    """Return the last part of a path."""
    return Path(path).name


def note_line_without_rule(error: BaseException, tape: Tape) -> None:
    """Add to an error about a missing rule the user's line that calls the function without one.

    Other suspects have rules, and no error names them.
    """
    if isinstance(error, RuleError):
        for name, line in tape.entries.suspects.items():
            if repr(name) in str(error):
                note(error, f"{name} is called at {line}")


def users_stack_level() -> int:
    """Return the ``stacklevel`` at which a warning of the caller points to the user's code."""
    return _users_frame()[1]


def _users_frame() -> tuple[FrameType | None, int]:
    """Return the innermost frame outside the libraries, None if there is none, and how far above it is.

    Level 1 is the frame that called this function's caller, as `warnings.warn` counts.
    """
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 (documented, and the only way without building a traceback)
    level = 1
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USERS:
        frame = frame.f_back
        level += 1
    return frame, level
