"""Statistics of results files, on published rows; the expected figures were computed apart with awk."""

from pathlib import Path

import numpy as np
import pytest

from jcdp_core.errors import ResultsError
from jcdp_core.results import SOLVER_COLUMNS, Results, columns, read_results
from jcdp_core.statistics import ratios_by_machines, summarize

DATA = Path(__file__).parent / "data"

FINISHED = """\
Average of C = optimum/DP (finished solves only; 2 left out)
q\\m       2      3      4      5      6
3      .983      1
6      .938   .963   .993   .999      1
Minimum of C = optimum/DP (finished solves only; 2 left out)
q\\m       2      3      4      5      6
3      .790      1
6      .761   .757   .872   .890      1
Percentage of chains where DP is optimal (finished solves only; 2 left out)
q\\m       2      3      4      5      6
3      80.0    100
6      31.3   50.7   86.6   98.0    100
Number of chains (finished solves only; 2 left out)
q\\m       2      3      4      5      6
3       150    150
6       150    150    149    149    150"""


@pytest.fixture(scope="module")
def published():
    return [read_results(DATA / f"results_length_{length}.head150.csv") for length in (3, 6)]


def test_published_rows_give_these_tables(published):
    assert "\n".join(map(str, summarize(published, finished_only=True))) == FINISHED


def test_all_chains_are_kept_apart_from_finished_ones(published):
    tables = summarize(published, finished_only=False)
    assert all(
        table.title.endswith("(all chains; 2 solves not proved: C is an upper bound)") for table in tables
    )
    assert tables[2].rows[6] == ("31.3", "50.7", "86.7", "98.0", "100")
    assert tables[3].rows[6] == ("150",) * 5


def test_figures_to_six_digits(published):
    ratios = ratios_by_machines(published, finished_only=True)[6]
    averages = [float(np.mean(row)) for row in ratios.values()]
    assert averages == pytest.approx([0.937971, 0.963485, 0.992948, 0.998867, 1], abs=6e-7)
    everything = ratios_by_machines(published, finished_only=False)[6]
    assert [float(np.mean(row)) for row in everything.values()] == pytest.approx(
        [0.937971, 0.963485, 0.992995, 0.998874, 1], abs=6e-7
    )


def test_another_solver_can_be_compared(published):
    tables = summarize(published, "BnB_List", finished_only=True)
    assert tables[0].title.startswith("Average of C = optimum/BnB_List")
    assert tables[2].rows[6] == ("72.0", "84.0", "98.7", "100", "100")


def test_results_of_one_length_are_joined(published):
    one, two = published[0], published[0]
    joined = ratios_by_machines([one, two], finished_only=True)
    assert list(joined) == [3]
    assert len(joined[3][2]) == 300


def results_of_two_links(usual=(7,), *, proved=True, **others):
    """Return results with the same makespans for both machine counts, of all solvers but some."""
    found = {(solver, count): others.get(solver, usual) for solver in SOLVER_COLUMNS for count in (1, 2)}
    return Results(2, {1: (True,) * len(usual), 2: (proved,) * len(usual)}, found)


def test_a_column_without_finished_solves_has_dashes_and_no_chains():
    results = results_of_two_links(proved=False)
    rows = [table.rows[2] for table in summarize([results], finished_only=True)]
    assert rows == [("-",), ("-",), ("-",), ("0",)]


def test_no_ratio_exceeds_one_where_another_solver_was_better():
    """As in files of earlier versions: the time of the exact solver ended above the heuristic's makespan."""
    results = results_of_two_links((12,), proved=False, BnB_BnB=(10,), BnB_List=(9,))
    assert results.ratios(2, "BnB_List", finished_only=False).tolist() == [1]
    assert results.ratios(2, "DP", finished_only=False).tolist() == [9 / 12]


def test_one_is_printed_only_where_it_is_one():
    results = results_of_two_links((1_000_000, 10), BnB_BnB=(999_999, 10))
    tables = summarize([results], finished_only=False)
    assert [table.rows[2] for table in tables] == [("1.00",), ("1.00",), ("50.0",), ("2",)]
    assert tables[0].title.endswith("(all chains, every optimum proved)")


def test_huge_makespans_stay_exact():
    results = results_of_two_links((10**30,), DP=(10**30 + 1,))
    assert summarize([results], finished_only=True)[2].rows[2] == ("0.0",)
    results = results_of_two_links((10**20, 10), DP=(10**20 + 1, 10))
    assert [table.rows[2] for table in summarize([results], finished_only=True)][:2] == [("1.00",)] * 2


def test_csv_and_latex(published):
    table = summarize(published, finished_only=True)[2]
    assert table.to_csv().splitlines() == [
        "Percentage of chains where DP is optimal (finished solves only; 2 left out)",
        "q,2,3,4,5,6",
        "3,80.0,100,,,",
        "6,31.3,50.7,86.6,98.0,100",
    ]
    latex = summarize(published, "DP_BnB", finished_only=True)[0].to_latex().splitlines()
    assert latex[1] == r"\caption{Average of C = optimum/DP\_BnB (finished solves only; 2 left out)}"
    assert latex[2] == r"\begin{tabular}{r|rrrrr}"
    assert latex[4] == r"3 & .983 & 1 &  &  &  \\"


def _file(tmp_path, text):
    path = tmp_path / "results.csv"
    path.write_text(text, encoding="utf-8")
    return path


HEADER = ",".join(columns(1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"results\.csv:1: .* column 1 is missing and should be 'BnB_BnB/1/finished'"),
        ("a,b\n1,2\n", r"results\.csv:1: not the header .*: column 1 is 'a' and should be"),
        (f"{HEADER},x\n", r"results\.csv:1: .* column 6 is 'x' and should be 'BnB_BnB/2/finished'"),
        (f"{HEADER}\n", r"results\.csv: there are no rows yet"),
        (f"{HEADER}\ntrue,1,1,1\n", r"results\.csv:2: 4 cells instead of 5"),
        (f"{HEADER}\ntrue,1,1,1,1\nyes,1,1,1,1\n", r"results\.csv:3: cell 1 is 'yes'"),
        (f"{HEADER}\ntrue,1,1.5,1,1\n", r"results\.csv:2: cell 3 is '1.5'"),
        (f"{HEADER}\ntrue,1,1,1,1\nfalse,90,95,92,9", r"results\.csv:3: the line has no end"),
        (f"{HEADER}\ntrue,1,1,0,1\n", r"results\.csv:2: cell 4 is '0', and a makespan is at least 1"),
    ],
)
def test_malformed_files(tmp_path, text, message):
    with pytest.raises(ResultsError, match=message):
        read_results(_file(tmp_path, text))


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        read_results(tmp_path / "absent.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(ResultsError, match=r"binary\.csv: not a CSV file"):
        read_results(tmp_path / "binary.csv")
