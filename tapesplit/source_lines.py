"""Where in the user's code the entries of a tape come from; looked up only for plans that are shown."""

import sys
from pathlib import Path
from typing import Any, Final

__all__ = ["LinedEntries"]

_NOT_THE_USERS: Final = {"tapesplit", "autograd", "numpy"}


class LinedEntries(list[tuple[Any, ...]]):
    """Entries of a tape that note the line of code which was running when each was appended.

    A look-up takes about a microsecond, more than recording a number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def append(self, entry: tuple[Any, ...]) -> None:
        """Append an entry and the line that it comes from."""
        super().append(entry)
        self.lines.append(_users_line())


def _users_line() -> str:
    """Return file and number of the innermost running line outside the libraries; empty if there is none."""
    frame = sys._getframe(2)  # noqa: SLF001 (documented, and the only way without building a traceback)
    while frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USERS:
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
