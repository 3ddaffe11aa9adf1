"""The width profile of a tape: how wide its live sets are, and how narrow it could be cut."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tapesplit.arrays import FloatArray, IntArray
from tapesplit.cuts.chunks import chunk_vertices
from tapesplit.cuts.flow import FLOW_BUDGET, minimum_cut
from tapesplit.cuts.graph import UNBOUNDED, TapeGraph, edges_below, frontier_widths, tape_ranks
from tapesplit.cuts.separators import Separator

__all__ = ["WidthProfile", "width_profile"]

_LOGARITHMIC_SPAN: Final = 20
"""Widths that span more than this factor are drawn on a logarithmic scale."""
_BAR: Final = 40
"""Characters of the longest bar."""
_NAMED: Final = 3
"""Separators of one share whose widths its line lists one by one, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class WidthProfile:
    """Narrowest live set and minimum cut in shares of a tape's edges, and where it is cut.

    Attributes
    ----------
    entries : (k,) array of int
        Tape entry at which each share ends.
    live : (k,) array of int
        Elements of the narrowest live set of the share; -1 if each one holds a value that cannot be cut.
    minimal : (k,) array of int
        Elements of the narrowest separator with everything before the share on its input side and nothing
        behind the share, or of one of ``separators`` that stands there and is narrower.
    separators : tuple of Separator
        The s separators that the tape is cut at.
    places : (s,) array of float
        Where they are, counted in shares: 2.5 is in the middle of the third one.
    """

    entries: IntArray
    live: IntArray
    minimal: IntArray
    separators: tuple[Separator, ...] = ()
    places: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def span(self) -> tuple[int, int]:
        """Least and largest width that there is."""
        widths = [*self.live.tolist(), *self.minimal.tolist(), *(s.width for s in self.separators)]
        positive = [width for width in widths if width > 0] or [1]
        return min(positive), max(positive)

    @property
    def is_logarithmic(self) -> bool:
        """Whether the widths differ so much that a picture needs a logarithmic scale."""
        least, most = self.span
        return most > _LOGARITHMIC_SPAN * least

    def height(self, width: float) -> float:
        """Return how high a width is drawn: 1 for the largest, 0 for none.

        Parameters
        ----------
        width
            Elements.

        Returns
        -------
        float
            On a logarithmic scale zero stands for half of the least width.
        """
        least, most = self.span
        if width <= 0:
            return 0.0
        if not self.is_logarithmic:
            return width / most
        return float(np.log(2 * width / least) / np.log(2 * most / least))

    def __str__(self) -> str:
        """Draw a bar for each share: # up to the minimum cut, . up to the live set; then the chosen cuts."""
        scale = "elements (logarithmic)" if self.is_logarithmic else "elements"
        lines = [f"{'entry':>8} {'live':>9} {'minimal':>9}  {scale}"]
        for share, (entry, live, minimal) in enumerate(
            zip(self.entries, self.live, self.minimal, strict=True)
        ):
            hashes, dots = (int(np.ceil(_BAR * self.height(width))) for width in (minimal, live))
            bar = "#" * hashes + "." * (dots - hashes)
            line = f"{entry:>8} {live:>9} {minimal:>9}  {bar:<{_BAR}}{self._cuts_in(share)}"
            lines.append(line.rstrip())
        return "\n".join(lines)

    def _cuts_in(self, share: int) -> str:
        """Name the widths of the separators in a share; those between two shares belong to the first."""
        shares = _shares_of(self.places)
        widths = [s.width for s, at in zip(self.separators, shares, strict=True) if at == share]
        if len(widths) > _NAMED:
            return f"  {len(widths)} cuts, {min(widths)} to {max(widths)} wide"
        return f"  cut{'s' * (len(widths) > 1)}, {', '.join(map(str, widths))} wide" if widths else ""

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw the profile into a file: live widths, minimal widths, and the chosen separators.

        Parameters
        ----------
        path
            The extension sets the format: .svg needs no other package, .png and .pdf need matplotlib.

        Raises
        ------
        ArgumentValueError, MissingPackageError, UnwritableFileError
            If the extension is none of these, if matplotlib is missing, or if the file cannot be written.
        """
        from tapesplit.draw import draw_profile  # noqa: PLC0415 - views stand above what they show

        draw_profile(self, path)

    def _repr_html_(self) -> str:
        """Show the profile in a notebook."""
        from tapesplit.draw import profile_html  # noqa: PLC0415 - views stand above what they show

        return profile_html(self)


def _shares_of(places: FloatArray) -> IntArray:
    """Return the share that each separator is in; one between two of them belongs to the first."""
    return np.maximum(np.ceil(places).astype(np.int64) - 1, 0)


def width_profile(
    graph: TapeGraph, separators: Sequence[Separator] = (), *, shares: int = 20
) -> WidthProfile:
    """Compare the live widths of a tape with the minimal widths that reordering would allow.

    Parameters
    ----------
    separators : sequence of Separator
        Nested separators, from input to output, that the profile is to mark.
    shares : int
        Number of parts of about equal edges that the tape is divided into; small tapes have fewer.

    Returns
    -------
    WidthProfile
        One row a share; ``str()`` draws it. A separator is where as many edges are spent as it spends.

    Notes
    -----
    Takes a maximum flow for each share, in which only its own values can be reordered; a chosen separator
    that is narrower counts where it stands. Where flows would take seconds the live width stands for the
    minimum.

    Examples
    --------
    Two strands are computed side by side, and each is narrow where the other one is wide:

    >>> import numpy as np
    >>> strands = TapeGraph(
    ...     entries=np.arange(6), widths=np.array([8, 2, 6, 6, 2, 8]), edges=np.array([0, 9, 9, 9, 9, 9]),
    ...     child=np.array([1, 2, 3, 4, 5, 5]), parent=np.array([0, 0, 1, 2, 3, 4]),
    ...     inputs=1, output=5)
    >>> print(width_profile(strands, shares=1))
       entry      live   minimal  elements
           5         8         4  ####################....................
    """
    ranks = tape_ranks(graph)
    widths = frontier_widths(graph, ranks)
    edges = edges_below(graph, ranks)
    ends = np.unique(np.searchsorted(edges, edges[-1] * np.arange(1, shares + 1) / shares))
    ends[-1] = len(edges) - 1  # with the movements that follow, which cost nothing
    rows = []
    start = 0
    for end in ends.tolist():
        live = minimal = int(widths[start : end + 1].min())
        inside = int(np.count_nonzero((ranks > start) & (ranks <= end)))
        limit = min(live, FLOW_BUDGET // max(inside, 1))
        if cut := minimum_cut(graph, ranks <= start, ranks <= end, limit, backend="scipy"):
            minimal = cut.width
        rows.append((graph.entries[ranks <= end][-1], live, minimal))
        start = end
    table = np.array(rows, dtype=np.int64)
    table[table >= UNBOUNDED] = -1
    spent = np.cumsum([graph.edges[vertices].sum() for vertices in chunk_vertices(graph, separators)])[:-1]
    places = np.interp(spent, [0, *edges[ends]], np.arange(len(ends) + 1.0))
    entries, live, minimal = table.T
    # A cut may take values from all over the tape, which no window has together.
    np.minimum.at(minimal, _shares_of(places), [separator.width for separator in separators])
    return WidthProfile(entries, live, minimal, tuple(separators), places)
