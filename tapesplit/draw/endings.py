"""Names of files that views are written to: their endings say the format."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tapesplit.errors import ArgumentValueError, MissingPackageError

__all__ = ["PICTURES", "REPORTS", "SCENES", "check_ending", "check_picture", "figure_class"]

SCENES: Final = (".svg", ".png", ".pdf")
"""What the name of a picture may end in."""
PICTURES: Final = (".svg", ".dot", ".gv", ".png", ".pdf")
"""The same for a picture of a split tape."""
REPORTS: Final = (".html", ".htm")
"""The same for a report."""
_BY_MATPLOTLIB: Final = (".png", ".pdf")


def check_ending(path: str | os.PathLike[str], endings: Sequence[str]) -> None:
    """Refuse a file whose name says another format.

    Raises `ArgumentValueError` if the name has none of the endings, of which there are two at least.

    Examples
    --------
    >>> check_ending("split.SVG", PICTURES)
    >>> check_ending("split.jpg", [".png", ".pdf"])
    Traceback (most recent call last):
        ...
    tapesplit.errors.ArgumentValueError: cannot write 'split.jpg': ...; let it end in .png or .pdf
    """
    ending = Path(path).suffix
    if ending.lower() not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        told = f"ends in {ending!r}" if ending else "has no ending"
        raise ArgumentValueError(f"cannot write {os.fspath(path)!r}: the name {told}; let it end in {known}")


def check_picture(path: str | os.PathLike[str], endings: Sequence[str]) -> None:
    """Refuse a picture in another format, or in one that needs matplotlib where that is missing.

    Raises `ArgumentValueError` if the name has none of the endings, and `MissingPackageError` if matplotlib
    is needed and not installed.

    Examples
    --------
    >>> check_picture("split.svg", PICTURES)
    """
    check_ending(path, endings)
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
