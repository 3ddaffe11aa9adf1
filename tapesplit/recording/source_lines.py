"""Where in the user's code the entries of a tape come from; looked up only for plans that are shown."""

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

from tapesplit.recording.tape import Entries

__all__ = ["LinedEntries", "users_stack_level"]

_NOT_THE_USERS: Final = {"tapesplit", "autograd", "numpy"}


class LinedEntries(Entries):
    """Entries of a tape that note the line of code which was running when each was recorded.

    A look-up takes about a microsecond, more than recording a number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def __iadd__(self, entry: Iterable[Any]) -> Self:  # type: ignore[misc] # no other sums are made
        """Append an entry and note the line that it comes from."""
        self.extend(entry)
        frame, _ = _users_frame()
        self.lines.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else "")
        return self


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
