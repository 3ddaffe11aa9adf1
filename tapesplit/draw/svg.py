"""Scenes as SVG that needs nothing else: own colors for light and dark, explanations on hover."""

from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from tapesplit.draw.scene import INK, STYLES, Area, Box, Label, Line, Scene, Shape, Style, box_labels

__all__ = ["scene_css", "to_svg"]

_FONT: Final = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def to_svg(scene: Scene, *, standalone: bool = True) -> str:
    """Render a scene as an svg element.

    If it is not `standalone`, a file of its own, the page around it must contain `scene_css`.

    Examples
    --------
    >>> box = Box(10, 10, 60, 20, "value", ("sin",), "sin, shape (3,)")
    >>> svg = to_svg(Scene(80, 40, "one box", "A box.", (box,)), standalone=False)
    >>> print(svg.splitlines()[1])
    <desc>A box.</desc>
    """
    namespace = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    width, height = _number(scene.width), _number(scene.height)
    size = f'width="{width}" height="{height}"' if standalone else f'style="{_elastic(scene.width)}"'
    label = f'role="img" aria-label={quoteattr(scene.title)}'
    lines = [
        f'<svg class="ts"{namespace} viewBox="0 0 {width} {height}" {size} {label}>',
        f"<desc>{escape(scene.description)}</desc>",
    ]
    if standalone:
        lines.append(f"<style>{scene_css()}</style>")
        lines.append(f'<rect class="paper" width="{width}" height="{height}"/>')
    lines += [_shape(shape) for shape in scene.shapes]
    return "\n".join([*lines, "</svg>"])


def _elastic(width: float) -> str:
    """Let a picture shrink to seven tenths where the page is narrow; beyond that it is scrolled."""
    return f"width:100%;min-width:{_number(0.7 * width)}px;max-width:{_number(width)}px"


def scene_css() -> str:
    """Write the style sheet of all scenes in literal colors, as many renderers know no variables."""
    light = [
        f".ts{{font-family:{_FONT};font-size:11px}}",
        ".ts text{stroke:none}",
        *(f".ts .{name}{{{_rule(style)}}}" for name, style in STYLES.items()),
        *(f".ts .{name}{{fill:{color}}}" for name, (color, _) in INK.items()),
    ]
    dark = [
        *(f".ts .{name}{{{_colors(style.dark_fill, style.dark_stroke)}}}" for name, style in STYLES.items()),
        *(f".ts .{name}{{fill:{color}}}" for name, (_, color) in INK.items()),
    ]
    return f"{''.join(light)}@media (prefers-color-scheme:dark){{{''.join(dark)}}}"


def _colors(fill: str, stroke: str) -> str:
    return f"fill:{fill};stroke:{stroke}"


def _rule(style: Style) -> str:
    """Write what a style declares."""
    dashes = f";stroke-dasharray:{' '.join(map(str, style.dashes))}" if style.dashes else ""
    width = f";stroke-width:{_number(style.width)}" if style.width != 1 else ""
    return _colors(style.fill, style.stroke) + dashes + width


def _shape(shape: Shape) -> str:
    """Render one shape."""
    match shape:
        case Box():
            return _box(shape)
        case Line():
            return _line(shape)
        case Area():
            points = " ".join(f"{_number(x)},{_number(y)}" for x, y in shape.points)
            return _explained(f'<polygon class="{shape.style}" points="{points}"/>', shape.tip)
        case Label():
            return _label(shape)


def _box(box: Box) -> str:
    """Render a box and its lines of text."""
    x, y, width, height = map(_number, (box.x, box.y, box.width, box.height))
    rect = f'<rect class="{box.style}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>'
    return _explained(rect + "".join(map(_label, box_labels(box))), box.tip)


def _explained(content: str, tip: str) -> str:
    """Group shapes with the text that appears when they are pointed at."""
    return f'<g class="tip"><title>{escape(tip)}</title>{content}</g>' if tip else content


def _line(line: Line) -> str:
    """Render a line, or an arrow in S-curves."""
    width = f' stroke-width="{_number(line.width)}"' if line.width != 1 else ""
    if not line.arrow:
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in line.points)
        return f'<polyline class="{line.style}" points="{points}"{width}/>'
    *before, (end, y) = line.points
    path = "".join(_curve(*ends) for ends in pairwise([*before, (end - 4, y)]))
    head = f'<path class="{line.style}" d="M{_number(end - 4)} {_number(y)}l-4 -3m4 3l-4 3"/>'
    start = " ".join(map(_number, line.points[0]))
    return f'<path class="{line.style}" d="M{start}{path}"{width}/>' + head


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Write one S-curve of a path."""
    middle = _number((start[0] + end[0]) / 2)
    return f"C{middle} {_number(start[1])} {middle} {_number(end[1])} {_number(end[0])} {_number(end[1])}"


def _label(label: Label) -> str:
    """Render a line of text."""
    anchor = "" if label.anchor == "start" else f' text-anchor="{label.anchor}"'
    size = "" if label.size == 11 else f' font-size="{label.size}"'
    weight = ' font-weight="600"' if label.strong else ""
    place = f'x="{_number(label.x)}" y="{_number(label.y)}"'
    return f'<text class="{label.ink}" {place}{anchor}{size}{weight}>{escape(label.text)}</text>'


def _number(value: float) -> str:
    """Write a coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")
