"""The picture of a width profile: live sets, minimum cuts, and the separators that were chosen."""

from math import floor, log10
from typing import Final

from tapesplit.cuts.width_profile import WidthProfile
from tapesplit.draw.numbers import count, plural
from tapesplit.draw.scene import Box, Label, Line, Scene, Shape

__all__ = ["profile_scene"]

_LEFT: Final = 64.0
_WIDTH: Final = 760.0
_WIDEST: Final = 60.0
"""Width of a share where there are few."""
_TOP: Final = 115.0
_HEIGHT: Final = 180.0
_MARGIN: Final = 16.0
_TICKS: Final = 6
"""At most so many lines across the picture."""
_DOT: Final = 7.0
_APART: Final = 30.0
"""Labels, and bars with labels, are no nearer than this."""
_SPACED: Final = "Red: chosen separators with their widths."
_CROWDED: Final = "Red: chosen separators; of close ones the narrowest has its width."


def profile_scene(profile: WidthProfile) -> Scene:
    """Draw how wide the tape's live sets are along it, how narrow it could be cut, and where it is cut.

    Each share has a bar, on a logarithmic scale where widths differ by more than a factor of 20.
    """
    shares = len(profile.entries)
    pitch = min(_WIDTH / shares, _WIDEST)
    right, bottom = _LEFT + max(pitch * shares, 450.0), _TOP + _HEIGHT
    cuts, crowded = _separators(profile, pitch)
    shapes = [*_titles(profile, crowded=crowded), *_scale(profile, _LEFT + pitch * shares)]
    for share in range(shares):
        shapes += _bars(profile, share, _LEFT + pitch * share, pitch)
    shapes += cuts
    shapes.append(Label(_LEFT, bottom + 34, "start of the tape", "muted"))
    shapes.append(Label(_LEFT + pitch * shares, bottom + 34, "end", "muted", "end"))
    live, minimal = profile.live.tolist(), profile.minimal.tolist()
    narrowest = min((width for width in minimal if width >= 0), default=-1)
    description = (
        f"Narrowest minimum cut: {_elements(narrowest)}. Widest live set shown: {_elements(max(live))}. "
        f"Cuts chosen: {len(profile.separators)}."
    )
    return Scene(right + _MARGIN, bottom + 46, "Width profile of the tape", description, tuple(shapes))


def _titles(profile: WidthProfile, *, crowded: bool) -> list[Shape]:
    """Title, and how to read the picture."""
    scale = " (logarithmic)" if profile.is_logarithmic else ""
    cuts = (_CROWDED if crowded else _SPACED) if profile.separators else ""
    return [
        Label(_MARGIN, 26, "Width profile of the tape", size=15, strong=True),
        Label(_MARGIN, 44, f"Elements{scale}; each bar is an equal share of the edges.", "muted"),
        Label(_MARGIN, 59, "Blue: narrowest possible cut. Pale: values alive in program order.", "muted"),
        *([Label(_MARGIN, 74, cuts, "muted")] if cuts else []),
    ]


def _scale(profile: WidthProfile, right: float) -> list[Shape]:
    """Lines across the picture with their numbers of elements."""
    shapes: list[Shape] = []
    for tick in _ticks(profile):
        y = _y(profile, tick)
        shapes.append(Line(((_LEFT, y), (right, y)), "axis"))
        shapes.append(Label(_LEFT - 8, y + 4, count(tick), "muted", "end"))
    bottom = _TOP + _HEIGHT
    return [*shapes, Line(((_LEFT, bottom), (right, bottom)), "axis")]


def _ticks(profile: WidthProfile) -> list[int]:
    """Round numbers of elements that the scale reaches, few enough to read."""
    least, most = profile.span
    decades = [10**power for power in range(floor(log10(most)) + 1)]
    if profile.is_logarithmic:
        fine = [digit * decade for decade in decades for digit in (1, 2, 5)]
        shown = [tick for tick in fine if least / 2 < tick <= most]
        return shown if len(shown) <= _TICKS else [tick for tick in shown if tick in decades]
    steps = (digit * decade for decade in decades for digit in (1, 2, 5))
    step = next(step for step in steps if most // step < _TICKS)
    return list(range(0, most + 1, step))


def _bars(profile: WidthProfile, share: int, x: float, pitch: float) -> list[Shape]:
    """Bars of one share, with the minimum cut as a number below."""
    entry, wide, narrow = (int(column[share]) for column in (profile.entries, profile.live, profile.minimal))
    tip = f"up to entry {entry}: live {_elements(wide)}, minimum cut {_elements(narrow)}"
    shapes: list[Shape] = []
    for width, style in ((wide, "chunk2"), (narrow, "tangent")):
        y = _y(profile, width)
        shapes.append(Box(x + 2, y, pitch - 4, _TOP + _HEIGHT - y, style, (), tip))
    if pitch >= _APART:
        text = count(narrow) if narrow >= 0 else "-"
        shapes.append(Label(x + pitch / 2, _TOP + _HEIGHT + 15, text, anchor="middle"))
    return shapes


def _separators(profile: WidthProfile, pitch: float) -> tuple[list[Shape], bool]:
    """Hang a dot at its width on a dashed line for each separator, and give it a number if there is room.

    The narrowest come first. Tell also whether some have no number.
    """
    shapes: list[Shape] = []
    tops: list[tuple[int, float]] = []
    for separator, place in zip(profile.separators, profile.places.tolist(), strict=True):
        x, y = _LEFT + pitch * place, _y(profile, separator.width)
        shapes.append(Line(((x, _TOP - 8), (x, y)), "cut"))
        tip = f"separator of {_elements(separator.width)}, behind entry {max(separator.vertices)}"
        shapes.append(Box(x - _DOT / 2, y - _DOT / 2, _DOT, _DOT, "separator", (), tip))
        tops.append((separator.width, x))
    named: list[float] = []
    for width, x in sorted(tops):
        if all(abs(x - other) >= _APART for other in named):
            named.append(x)
            shapes.append(Label(x, _TOP - 13, count(width), anchor="middle", strong=True))
    return shapes, len(named) < len(tops)


def _y(profile: WidthProfile, width: int) -> float:
    """Where a width is in the picture."""
    return _TOP + _HEIGHT * (1 - profile.height(width))


def _elements(width: int) -> str:
    """Write a width; some values cannot be cut at."""
    return "no cut possible" if width < 0 else plural(width, "element")
