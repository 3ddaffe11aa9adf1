"""Tables of chains, sequences, schedules and solutions, as text and in notebooks: the right numbers."""

from xml.etree import ElementTree as ET

import pytest

from jcdp_core import ElementalJacobian, JacobianChain, solve
from jcdp_core.tables import html_table, text_table

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
        (
            SOLUTION,
            [
                ["1", "ACC ADJ (0 1)", "14", "[1,2]", "0", "14"],
                ["2", "ELI TAN (0 1 2)", "33", "[1,2]", "14", "47"],
            ],
        ),
    ],
)
def test_tables_have_the_numbers(shown, rows):
    head, *body = cells(shown._repr_html_())
    assert body == rows
    assert len(head) == len(rows[0])


def test_text_is_escaped():
    assert cells(html_table("<b>", ["&"], [["<i>"]])) == [["&"], ["<i>"]]


def test_the_caption_of_a_solution_says_what_is_proved():
    assert "<caption>dp on 2 machines: makespan 47 fma (optimal)</caption>" in SOLUTION._repr_html_()


def test_modes_that_are_not_available_have_no_cost():
    chain = JacobianChain((ElementalJacobian(3, 2, 7, tangent=False), ElementalJacobian(2, 5, 11)))
    assert cells(chain._repr_html_())[1] == ["1", "3", "2", "7", "-", "7"]
    assert str(chain).splitlines() == [
        "Jacobian chain of 2 links",
        "link  inputs n  outputs m  |E|  tangent fma  adjoint fma",
        "   1         3          2    7            -            7",
        "   2         2          5   11           11           11",
    ]


def test_sequences_and_schedules_print_as_tables():
    assert str(SOLUTION.sequence).splitlines() == [
        "Elimination sequence, 47 fma: (Ḟ2 F1)",
        "step  operation        fma  needs",
        "   1  ACC ADJ (0 1)     14",
        "   2  ELI TAN (0 1 2)   33  1",
    ]
    assert str(SOLUTION.schedule).splitlines() == [
        "Schedule on 2 machines, makespan 47 fma",
        "step  machine  start  finish",
        "   1        1      0      14",
        "   2        1     14      47",
    ]


@pytest.mark.parametrize("length", [40, 200])
def test_long_tables_are_abbreviated_in_the_middle(length):
    chain = JacobianChain.from_sizes(range(10, 11 + length), [10**6 + i for i in range(length)])
    solution = solve(chain, machines=2, matrix_free=False)
    for shown, rows in (
        (chain, length),
        (solution.sequence, 2 * length - 1),
        (solution.schedule, 2 * length - 1),
    ):
        lines = str(shown).splitlines()
        assert len(lines) == 2 + 24 + 1
        assert lines[14] == f"… {rows - 24} more …"
        assert [int(line.split()[0]) for line in lines[2:14]] == list(range(1, 13))
        assert [int(line.split()[0]) for line in lines[15:]] == list(range(rows - 11, rows + 1))
        assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(("rows", "lines"), [(24, 26), (25, 27), (26, 27)])
def test_a_line_that_says_how_many_are_left_out_replaces_at_least_two(rows, lines):
    assert len(text_table("numbers", ["n"], [[i] for i in range(rows)]).splitlines()) == lines


@pytest.mark.parametrize("number", [2**63, 10**60])
def test_huge_numbers_are_never_cut(number):
    *_, line = str(JacobianChain.from_sizes([number, number + 1], [number + 2])).splitlines()
    expected = [1, number, number + 1, number + 2, number + 2, number + 2]
    assert list(map(int, line.split())) == expected


def test_long_titles_end_with_an_ellipsis():
    title, *_ = text_table("x" * 101, ["n"], [[1]]).splitlines()
    assert title == "x" * 99 + "…"
