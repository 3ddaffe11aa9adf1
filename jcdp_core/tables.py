"""Tables: chains, sequences and schedules show themselves as text, and in notebooks as HTML."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

__all__ = ["Tabular", "html_table", "text_table"]

_WIDTH: Final = 100
_MOST_ROWS: Final = 24


class Tabular(ABC):
    """Base class of what shows itself as a table, by its ``str`` and in notebooks."""

    @abstractmethod
    def _table(self) -> tuple[str, Sequence[str], Sequence[Sequence[object]]]:
        """Return what the table shows, the titles of its columns, and its rows."""

    def __str__(self) -> str:
        """Return the table as text."""
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return html_table(*self._table())


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table as HTML.

    Cells are shown by their ``str``; the first cell of a row is its heading. Text is escaped.

    Examples
    --------
    >>> print(html_table("sizes", ["link", "n"], [[1, 3]]))
    <table><caption>sizes</caption><thead><tr><th scope="col">link</th><th scope="col">n</th></tr></thead>
    <tbody><tr><th scope="row">1</th><td>3</td></tr></tbody></table>
    """
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td>{escape(str(cell))}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{escape(str(first))}</th>{cells}</tr>')
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{titles}</tr></thead>\n"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def text_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a table as text, of 24 rows at most.

    Cells are shown by their ``str``, numbers at the right; of a long table the rows in the middle are left
    out. A title of more than 100 characters ends with "…", numbers are never cut.

    Examples
    --------
    >>> print(text_table("sizes", ["link", "of"], [[1, "F1"], [2, "F2"]]))
    sizes
    link  of
       1  F1
       2  F2
    """
    left_out = len(rows) - _MOST_ROWS if len(rows) > _MOST_ROWS + 1 else 0
    shown = [*rows[: _MOST_ROWS // 2], *rows[_MOST_ROWS // 2 + left_out :]]
    columns = []
    for name, *cells in zip(head, *shown, strict=True):
        texts = [name, *map(str, cells)]
        width = max(map(len, texts))
        right = any(isinstance(cell, int) for cell in cells)
        columns.append([f"{text:>{width}}" if right else f"{text:<{width}}" for text in texts])
    short = title if len(title) <= _WIDTH else title[: _WIDTH - 1] + "…"
    lines = [short, *("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))]
    if left_out:
        lines.insert(2 + _MOST_ROWS // 2, f"… {left_out} more …")
    return "\n".join(lines)
