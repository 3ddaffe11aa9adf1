"""A picture as data: boxes, lines, areas and labels with named styles; each file format renders them."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = [
    "INK",
    "STYLES",
    "Area",
    "Box",
    "Label",
    "Line",
    "Scene",
    "Shape",
    "Style",
    "box_labels",
    "chunk_style",
]


@dataclass(frozen=True, slots=True)
class Style:
    """Colors for light and dark backgrounds.

    Parameters
    ----------
    fill, stroke
        On a light background.
    dark_fill, dark_stroke
        On a dark background.
    dashes
        Lengths of dash and gap; empty for a solid line.
    width
        Of the stroke, in pixels.
    """

    fill: str
    stroke: str
    dark_fill: str
    dark_stroke: str
    dashes: tuple[int, ...] = ()
    width: float = 1.0


Ink: TypeAlias = Literal["ink", "muted", "paper"]

INK: Final[dict[Ink, tuple[str, str]]] = {
    "ink": ("#1c2733", "#e6edf3"),
    "muted": ("#55626f", "#a3b0bd"),
    "paper": ("#ffffff", "#10161d"),
}
"""Color of text and background, light and dark."""

STYLES: Final = {
    "chunk0": Style("#dff3e2", "#98c9a2", "#1b3b24", "#44794f"),
    "chunk1": Style("#fbf6cf", "#d0c36d", "#3f3a17", "#81772f"),
    "chunk2": Style("#e2e6ea", "#a7b1bb", "#2b333b", "#5c6a77"),
    "chunk3": Style("#d6efee", "#8dc3c0", "#143a3a", "#3f7d7b"),
    "value": Style("#ffffff", "#55626f", "#10161d", "#a3b0bd"),
    "end": Style("#1c2733", "#1c2733", "#e6edf3", "#e6edf3"),
    "arc": Style("none", "#6b7884", "none", "#8b98a5"),
    "cut": Style("none", "#c02626", "none", "#ff8080", (6, 4), 2.0),
    "separator": Style("#c02626", "#ffffff", "#ff8080", "#10161d"),
    "axis": Style("none", "#a7b1bb", "none", "#5c6a77"),
    "tangent": Style("#8ec1ee", "#2b6ca3", "#1f5180", "#7db8ea"),
    "adjoint": Style("#f7b267", "#a8611a", "#7d4a14", "#f2b06b"),
    "multiply": Style("#b9a7e0", "#6247a3", "#4a3580", "#b9a3ee"),
    "bound": Style("#c9d1d9", "#7a8692", "#3a444e", "#8b98a5"),
}


def chunk_style(number: int) -> str:
    """Name the style of a chunk; neighbors differ, and none has the color of a mode."""
    return f"chunk{number % 4}"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with centered lines of text, which explains itself when pointed at."""

    x: float
    y: float
    width: float
    height: float
    style: str
    lines: tuple[str, ...] = ()
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; with an arrow it goes from point to point in S-curves."""

    points: tuple[tuple[float, float], ...]
    style: str
    arrow: bool = False
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class Area:
    """A filled polygon."""

    points: tuple[tuple[float, float], ...]
    style: str
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text; y is its baseline."""

    x: float
    y: float
    text: str
    ink: Ink = "ink"
    anchor: Literal["start", "middle", "end"] = "start"
    size: int = 11
    strong: bool = False


def box_labels(box: Box) -> list[Label]:
    """Lay out the lines of text in a box."""
    ink: Ink = "paper" if box.style == "end" else "ink"
    middle, top = box.x + box.width / 2, box.y + box.height / 2 + 4 - 6.5 * (len(box.lines) - 1)
    return [Label(middle, top + 13 * i, text, ink, "middle") for i, text in enumerate(box.lines)]


Shape = Box | Line | Area | Label


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture.

    Parameters
    ----------
    width, height
        In pixels; y grows downward.
    title, description
        What it is, and what it shows, for those who do not see it.
    shapes
        Later ones lie on top.
    """

    width: float
    height: float
    title: str
    description: str
    shapes: tuple[Shape, ...]
