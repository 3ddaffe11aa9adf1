"""Notes that say what was being done, added to exceptions that pass through from the code of users."""

from contextlib import suppress

__all__ = ["note"]


def note(error: BaseException, text: str) -> None:
    """Add a note to an exception, but once: some are objects that are raised again and again."""
    if text not in getattr(error, "__notes__", ()):
        with suppress(Exception):  # of exceptions that cannot be changed
            error.add_note(text)
