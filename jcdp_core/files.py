"""Checks that files can be written, which commands make before there is work to lose."""

import os
from collections.abc import Sequence
from pathlib import Path

from jcdp_core.errors import ConfigError

__all__ = ["check_file", "check_folder", "choice"]


def choice(endings: Sequence[str]) -> str:
    """Write the endings that a file name may have, two at least, as a list in words.

    Examples
    --------
    >>> choice([".txt", ".pdf", ".png"])
    '.txt, .pdf or .png'
    """
    return f"{', '.join(endings[:-1])} or {endings[-1]}"


def check_file(name: str | None, endings: Sequence[str]) -> None:
    """Refuse a file that cannot be written.

    None is no file. Raises `ConfigError` if the name has none of the endings, or names what we may not write.

    Examples
    --------
    >>> check_file("plan.txt", [".svg", ".png"])
    Traceback (most recent call last):
        ...
    jcdp_core.errors.ConfigError: cannot write 'plan.txt': the name ends in '.txt'; let it end in .svg or .png
    """
    if name is None:
        return
    file = Path(name)
    if file.suffix.lower() not in endings:
        has = f"the name ends in {file.suffix!r}" if file.suffix else "the name has no ending"
        raise ConfigError(f"cannot write {name!r}: {has}; let it end in {choice(endings)}")
    if not file.exists():
        check_folder(name)
    elif file.is_dir() or not os.access(file, os.W_OK):
        raise ConfigError(f"cannot write {name!r}: it is a folder, or you have no permission")


def check_folder(start: str) -> None:
    """Refuse, with a `ConfigError`, a file-name prefix whose folder does not exist or cannot be written.

    Examples
    --------
    >>> check_folder("nowhere/row_")
    Traceback (most recent call last):
        ...
    jcdp_core.errors.ConfigError: cannot write 'nowhere/row_': there is no folder 'nowhere'; ...
    """
    folder = Path(f"{start}_").parent
    if not folder.is_dir():
        raise ConfigError(
            f"cannot write {start!r}: there is no folder {str(folder)!r}; make it, or name another"
        )
    if not os.access(folder, os.W_OK):
        raise ConfigError(f"cannot write {start!r}: you have no permission in the folder {str(folder)!r}")
