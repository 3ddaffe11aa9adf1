"""Pictures into files: the ending of the name says the format."""

import os
from pathlib import Path

from tapesplit.cuts.width_profile import WidthProfile
from tapesplit.draw.dot import to_dot
from tapesplit.draw.endings import PICTURES, SCENES, check_picture
from tapesplit.draw.figure import save_figure
from tapesplit.draw.profile import profile_scene
from tapesplit.draw.scene import Scene
from tapesplit.draw.split import split_scene
from tapesplit.draw.svg import to_svg
from tapesplit.planning.plan import JacobianPlan

__all__ = ["draw_profile", "draw_split"]


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
    ArgumentValueError
        If the ending is none of these.
    MissingPackageError
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
    tapesplit.errors.ArgumentValueError: cannot write 'split.jpg': the name ends in '.jpg'; let it end in ...
    """
    check_picture(path, PICTURES)
    path = Path(path)
    if path.suffix.lower() in {".dot", ".gv"}:
        path.write_text(to_dot(plan), encoding="utf-8")
    else:
        _write(split_scene(plan), path)


def draw_profile(profile: WidthProfile, path: str | os.PathLike[str]) -> None:
    """Draw a width profile into a file: live widths, minimal widths, and the chosen separators.

    Parameters
    ----------
    profile
        From `tapesplit.profile_widths`.
    path
        File to write: .svg needs nothing else, .png and .pdf need matplotlib.

    Raises
    ------
    ArgumentValueError
        If the ending is none of these.
    MissingPackageError
        If matplotlib is needed and not installed.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import profile_widths, record
    >>> profile = profile_widths(record(lambda x: np.sin(np.sum(x)) * np.ones(9), np.ones(9)))
    >>> draw_profile(profile, "widths.jpg")
    Traceback (most recent call last):
        ...
    tapesplit.errors.ArgumentValueError: cannot write 'widths.jpg': the name ends in '.jpg'; let it end in ...
    """
    check_picture(path, SCENES)
    _write(profile_scene(profile), Path(path))


def _write(scene: Scene, path: Path) -> None:
    """Draw a scene in the format that the ending of the name says."""
    if path.suffix.lower() == ".svg":
        path.write_text(to_svg(scene), encoding="utf-8")
    else:
        save_figure(scene, path)
