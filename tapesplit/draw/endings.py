"""Files that views are written to: the endings of their names say the format."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tapesplit.errors import ArgumentValueError, MissingPackageError, UnwritableFileError

__all__ = ["PICTURES", "REPORTS", "SCENES", "check_file", "check_picture", "figure_class"]

SCENES: Final = (".svg", ".png", ".pdf")
"""What the name of a picture may end in."""
PICTURES: Final = (".svg", ".dot", ".gv", ".png", ".pdf")
"""The same for a picture of a split tape."""
REPORTS: Final = (".html", ".htm")
"""The same for a report."""
_BY_MATPLOTLIB: Final = (".png", ".pdf")


def check_file(path: str | os.PathLike[str], endings: Sequence[str]) -> None:
    """Refuse a file whose name says another format, or which cannot be written.

    Raises `ArgumentValueError` if the name has none of the endings, of which there are two at least, and
    `UnwritableFileError` if it has no folder, is a folder, or may not be written.

    Examples
    --------
    >>> check_file("split.SVG", PICTURES)
    >>> check_file("split.jpg", [".png", ".pdf"])
    Traceback (most recent call last):
        ...
    tapesplit.errors.ArgumentValueError: cannot write 'split.jpg': ...; let it end in .png or .pdf
    """
    file = Path(path)
    ending = file.suffix
    if ending.lower() not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        told = f"ends in {ending!r}" if ending else "has no ending"
        raise ArgumentValueError(f"cannot write {os.fspath(path)!r}: the name {told}; let it end in {known}")
    if not file.parent.is_dir():
        raise UnwritableFileError(
            f"cannot write {str(file)!r}: there is no folder {str(file.parent)!r}; make it, or name another"
        )
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise UnwritableFileError(
            f"cannot write {str(file)!r}: it is a folder, or you have no permission; give another name"
        )


def check_picture(path: str | os.PathLike[str], endings: Sequence[str]) -> None:
    """Refuse a picture as `check_file` does, and one that needs matplotlib where that is missing.

    Raises `MissingPackageError` if matplotlib is needed and not installed.

    Examples
    --------
    >>> check_picture("split.svg", PICTURES)
    """
    check_file(path, endings)
    if Path(path).suffix.lower() in _BY_MATPLOTLIB:
        figure_class(path)


def figure_class(path: str | os.PathLike[str]) -> Any:
    """Import matplotlib's class of figures, or say how to get it.

    The message of the `MissingPackageError` names `path`, the picture that needs it.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional package
    except ImportError as error:
        raise MissingPackageError(
            f"drawing {os.fspath(path)!r} needs matplotlib, which is not installed; install it with "
            "pip install 'tapesplit[plot]', or draw an .svg file, which needs nothing"
        ) from error
    return Figure
