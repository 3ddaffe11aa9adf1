"""Pictures into files: the ending of the name says the format."""

import os
from pathlib import Path

from tapesplit.draw.dot import to_dot
from tapesplit.draw.figure import save_figure
from tapesplit.draw.split import split_scene
from tapesplit.draw.svg import to_svg
from tapesplit.plan import JacobianPlan

__all__ = ["draw_split"]


def draw_split(plan: JacobianPlan, path: str | os.PathLike[str]) -> None:
    """Draw the split tape of a plan into a file.

    Parameters
    ----------
    plan
        The plan.
    path
        File to write: .svg and .dot need nothing else, .png and .pdf need matplotlib.

    Raises
    ------
    ValueError
        If the ending is none of these.
    ImportError
        If matplotlib is needed and not installed.

    Notes
    -----
    Large tapes are folded, so a tape of 1e5 entries takes about a second and 100 kB.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> plan = parallel_jacobian(np.sin).plan(np.ones(3))
    >>> draw_split(plan, "split.jpg")
    Traceback (most recent call last):
        ...
    ValueError: cannot draw 'split.jpg': the name ends in '.jpg'; let it end in .svg, .dot, .png or .pdf
    """
    path = Path(path)
    match path.suffix.lower():
        case ".svg":
            path.write_text(to_svg(split_scene(plan)), encoding="utf-8")
        case ".dot" | ".gv":
            path.write_text(to_dot(plan), encoding="utf-8")
        case ".png" | ".pdf":
            save_figure(split_scene(plan), path)
        case suffix:
            raise ValueError(
                f"cannot draw {os.fspath(path)!r}: the name ends in {suffix!r}; let it end in .svg, .dot, "
                ".png or .pdf"
            )
