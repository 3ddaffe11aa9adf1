"""Tables for notebooks: chains, sequences and schedules show themselves as HTML there."""

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table as HTML.

    Parameters
    ----------
    caption : str
        What the table shows.
    head : sequence of str
        Titles of the columns.
    rows : iterable of sequences
        Cells; their ``str`` is shown. The first cell of a row is its heading.

    Returns
    -------
    str
        A table element; its text is escaped.

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
