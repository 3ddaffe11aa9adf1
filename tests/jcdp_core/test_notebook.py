"""What notebooks show of chains, sequences and schedules: well-formed tables with the right numbers."""

from xml.etree import ElementTree as ET

import pytest

from jcdp_core import JacobianChain, solve
from jcdp_core.notebook import html_table

CHAIN = JacobianChain.from_sizes([3, 2, 5], [7, 11])
SOLUTION = solve(CHAIN, machines=2)


def cells(html):
    table = ET.fromstring(html)  # noqa: S314 - our own text
    return [[cell.text or "" for cell in row] for row in table.iter("tr")]


@pytest.mark.parametrize(
    ("shown", "rows"),
    [
        (CHAIN, [["1", "3", "2", "7", "7", "7"], ["2", "2", "5", "11", "11", "11"]]),
        (SOLUTION.sequence, [["1", "ACC ADJ (0 1)", "14", ""], ["2", "ELI TAN (0 1 2)", "33", "1"]]),
        (SOLUTION.schedule, [["1", "1", "0", "14"], ["2", "1", "14", "47"]]),
    ],
)
def test_tables_have_the_numbers(shown, rows):
    head, *body = cells(shown._repr_html_())
    assert body == rows
    assert len(head) == len(rows[0])


def test_text_is_escaped():
    assert cells(html_table("<b>", ["&"], [["<i>"]])) == [["&"], ["<i>"]]
