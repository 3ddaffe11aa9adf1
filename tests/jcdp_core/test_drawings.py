"""Drawings of results and schedules: DOT text, and what the matplotlib figures show."""

import re
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from jcdp_core.chain import JacobianChain
from jcdp_core.dot import machine_color, task_tree_dot
from jcdp_core.errors import ArgumentTypeError, InvalidScheduleError
from jcdp_core.operation import Operation
from jcdp_core.results import read_results
from jcdp_core.schedule import Schedule, Task
from jcdp_core.sequence import EliminationSequence
from jcdp_core.solvers import solve

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def three_machines():
    """Return the worked example of Märtens & Naumann (2025) on three machines."""
    sizes, edges = (268, 173, 190, 416, 108, 264, 318), (15162, 76665, 77374, 27642, 94710, 95965)
    return solve(JacobianChain.from_sizes(sizes, edges), machines=3)


@pytest.fixture
def plot():
    pytest.importorskip("matplotlib")
    from jcdp_core import plot

    return plot


def test_dot_is_the_in_tree_of_the_worked_example(three_machines):
    text = task_tree_dot(three_machines.sequence, three_machines.schedule)
    arcs = [tuple(map(int, arc)) for arc in re.findall(r"^  (\d+) -> (\d+);$", text, re.MULTILINE)]
    assert arcs == [(1, 2), (2, 8), (3, 4), (4, 6), (5, 6), (6, 7), (7, 8)]
    nodes = dict(re.findall(r'^  (\d+) \[label="(.*)", fillcolor=".*"\];$', text, re.MULTILINE))
    assert list(nodes) == [str(index) for index in range(1, 9)]
    assert nodes["4"] == r"4: ELI ADJ (2 3 4)\n8 356 392 fma\nmachine 2"
    fills = re.findall(r'fillcolor="(.*)"', text)
    assert fills == [machine_color(machine) for machine in (0, 0, 1, 1, 2, 1, 1, 0)]


def test_task_tree_shows_every_step_and_arc(plot, three_machines):
    figure = plot.draw_task_tree(three_machines.sequence, three_machines.schedule)
    (axis,) = figure.axes
    boxes = {text.get_text().split(":")[0]: text for text in axis.texts if text.get_text()}
    assert sorted(boxes) == [str(index) for index in range(1, 9)]
    heights = {index: box.get_position()[1] for index, box in boxes.items()}
    assert heights["8"] == 0
    assert max(heights.values()) == heights["3"] == 4
    assert len(axis.texts) - len(boxes) == 7  # the arrows are annotations without text
    assert len({box.get_position() for box in boxes.values()}) == 8
    machines = {index: text.get_text().splitlines()[2] for index, text in boxes.items()}
    assert machines == {
        str(task.index + 1): f"machine {task.machine + 1}" for task in three_machines.schedule.tasks
    }


def test_gantt_bars_are_the_tasks(plot, three_machines):
    (axis,) = plot.draw_gantt(three_machines.sequence, three_machines.schedule, "DP, 3 machines").axes
    assert axis.get_title() == "DP, 3 machines"
    bars = [(bar.get_x(), bar.get_width(), round(bar.get_y() + 0.4) - 1) for bar in axis.patches]
    tasks = three_machines.schedule.tasks
    assert bars == [(task.start, task.finish - task.start, task.machine) for task in tasks]
    assert axis.get_xlim() == (0, 29797092)
    assert axis.get_xlabel() == "time in fma (makespan 29\u2009797\u2009092)"


@pytest.mark.parametrize("edges", [1, 2_600_000_000_000, 4_000_000_000_000, 10**15])
def test_times_on_the_axis_are_integers_that_fit_side_by_side(plot, edges):
    solution = solve(JacobianChain.from_sizes([1] * 4, [edges] * 3), machines=2)
    figure = plot.draw_gantt(solution.sequence, solution.schedule)
    figure.draw_without_rendering()
    ticks = [tick for tick in figure.axes[0].get_xticklabels() if tick.get_text()]
    assert len({tick.get_text() for tick in ticks}) == len(ticks) > 1
    places = sorted((tick.get_window_extent().x0, tick.get_window_extent().x1) for tick in ticks)
    assert all(end < begin for (_, end), (begin, _) in pairwise(places))


def test_bars_show_what_fits_and_idle_machines_share_a_row(plot):
    lengths = [1, 20, 40, 939]
    operations = ["ACC TAN (0 1)", "ELI TAN (0 1 2)", "ELI TAN (0 2 3)", "ELI TAN (0 3 4)"]
    sequence = EliminationSequence(tuple(map(Operation.parse, operations)), tuple(lengths))
    starts = [0, 1, 21, 61]
    tasks = [
        Task(index, 0, start, start + length, (0,))
        for index, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]
    (axis,) = plot.draw_gantt(sequence, Schedule(tasks, 5)).axes
    assert [text.get_text() for text in axis.texts] == ["", "2", "3", "4\nELI TAN\n(0 3 4)"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["1", "2-5"]


def test_no_text_is_wider_than_its_bar(plot):
    rng = np.random.default_rng(1)
    chain = JacobianChain.from_sizes(rng.integers(5, 50, 25), rng.integers(1000, 10000, 24))
    solution = solve(chain, machines=4)
    figure = plot.draw_gantt(solution.sequence, solution.schedule)
    figure.draw_without_rendering()
    for bar, text in zip(figure.axes[0].patches, figure.axes[0].texts, strict=True):
        assert not text.get_text() or text.get_window_extent().width < bar.get_window_extent().width


def test_times_beyond_64_bits_are_drawn(plot, tmp_path):
    chain = JacobianChain.from_sizes([3 * 10**50, 2, 5], [7 * 10**50, 11])
    solution = solve(chain, machines=2)
    figure = plot.draw_gantt(solution.sequence, solution.schedule)
    figure.savefig(tmp_path / "gantt.png")
    (axis,) = figure.axes
    assert axis.get_xlabel() == f"time in fma (makespan {Decimal(solution.makespan):.3e})"
    assert sum(bar.get_width() for bar in axis.patches) == pytest.approx(axis.get_xlim()[1])


def test_steps_of_another_schedule_are_refused(plot, three_machines):
    other = solve(JacobianChain.from_sizes([3, 2, 5], [7, 11]))
    for draw in (task_tree_dot, plot.draw_gantt, plot.draw_task_tree):
        with pytest.raises(InvalidScheduleError, match="the schedule has 2 tasks, but the sequence 8 steps"):
            draw(three_machines.sequence, other.schedule)
        with pytest.raises(ArgumentTypeError, match="sequence is a Schedule, where an EliminationSeq"):
            draw(other.schedule, other.sequence)


def test_box_plots_have_quartiles_and_outer_percentiles(plot):
    results = [read_results(DATA / f"results_length_{length}.head150.csv") for length in (3, 6)]
    figure = plot.draw_box_plots(results, finished_only=True)
    assert [axis.get_title() for axis in figure.axes] == ["$q = 3$", "$q = 6$"]
    assert figure.get_suptitle() == "finished solves only; 2 left out"
    axis = figure.axes[1]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["2", "3", "4", "5", "6"]
    sample = 100 * results[1].ratios(2, finished_only=True)
    box = axis.patches[0].get_path().vertices[:, 1]
    assert [box.min(), box.max()] == pytest.approx(np.percentile(sample, [25, 75]))
    ends = [line.get_ydata() for line in axis.lines if list(line.get_xdata()) == [1, 1]]
    low, high = np.percentile(sample, [2, 98])
    assert min(min(end) for end in ends) == sample[sample >= low].min()
    assert max(max(end) for end in ends) == sample[sample <= high].max()
    crosses = next(line for line in axis.lines if line.get_marker() == "x")
    assert sorted(crosses.get_ydata()) == sorted(sample[(sample < low) | (sample > high)])


def test_figures_can_be_saved_without_a_display(plot, three_machines, tmp_path):
    results = [read_results(DATA / "results_length_3.head150.csv")]
    figure = plot.draw_box_plots(results, finished_only=False)
    assert figure.get_suptitle() == "all chains, every optimum proved"
    figure.savefig(tmp_path / "boxes.png")
    plot.draw_gantt(three_machines.sequence, three_machines.schedule).savefig(tmp_path / "gantt.svg")
    plot.draw_task_tree(three_machines.sequence, three_machines.schedule).savefig(tmp_path / "tree.pdf")
    assert (tmp_path / "boxes.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "gantt.svg").read_text(encoding="utf-8")
    assert (tmp_path / "tree.pdf").read_bytes().startswith(b"%PDF")


def test_missing_matplotlib_says_what_to_install(plot, three_machines, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"drawing needs matplotlib; install it with: pip install"):
        plot.draw_gantt(three_machines.sequence, three_machines.schedule)
