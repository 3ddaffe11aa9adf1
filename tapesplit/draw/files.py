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
    """Draw the split tape of a plan into a file, see `JacobianPlan.draw`."""
    check_picture(path, PICTURES)
    path = Path(path)
    if path.suffix.lower() in {".dot", ".gv"}:
        path.write_text(to_dot(plan), encoding="utf-8")
    else:
        _write(split_scene(plan), path)


def draw_profile(profile: WidthProfile, path: str | os.PathLike[str]) -> None:
    """Draw a width profile into a file, see `WidthProfile.draw`."""
    check_picture(path, SCENES)
    _write(profile_scene(profile), Path(path))


def _write(scene: Scene, path: Path) -> None:
    """Draw a scene in the format that the ending of the name says."""
    if path.suffix.lower() == ".svg":
        path.write_text(to_svg(scene), encoding="utf-8")
    else:
        save_figure(scene, path)
