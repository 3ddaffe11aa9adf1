"""Facts of tapes: what kind of call each entry is, and what it costs."""

import autograd.numpy as np
import numpy as onp
import pytest

from tapesplit.cost.model import total_work, work_table
from tapesplit.recording.recorder import record
from tapesplit.recording.tape import constant_positions
from tapesplit.structures.facts import facts_of
from tapesplit.structures.structure import structure_of


@pytest.mark.parametrize(
    ("fun", "looped"),
    [
        (lambda x: np.add(x, x), 0),
        (lambda x: np.clip(x, a_min=0.1, a_max=2.0), 0),
        (lambda x: np.sin(x, where=onp.array([True, False, True]), out=None), 1),
    ],
)
def test_a_keyword_that_no_formula_knows_makes_a_call_a_loop(fun, looped):
    tape = record(fun, onp.ones(3))
    work = total_work(work_table(facts_of(tape, structure_of(tape))), [1])
    assert (work.looped, work.elements) == (looped, 3 * (1 - looped))


@pytest.mark.parametrize(
    ("fun", "steps", "block_steps"),
    [
        (np.max, 6, 1),
        (lambda x: np.cumsum(x, axis=0), 6, 1),
        (lambda x: np.linalg.norm(x, 3), 6, 4),
        (np.sum, 1, 0),
        (lambda x: np.linalg.det(np.outer(x, x)), 6, 1),
    ],
)
def test_steps_of_reductions_and_blocks(fun, steps, block_steps):
    tape = record(fun, onp.array([1.0, 2.0, 3.0]))
    work = total_work(work_table(facts_of(tape, structure_of(tape))), [len(tape) - 1])
    assert (work.steps, work.block_steps) == (steps, block_steps)


def test_arguments_are_told_from_constants_in_linear_time():
    """A list of thousands of numbers, joined with as many constants."""
    args = [0.0] * 30_000
    assert constant_positions(args, tuple(range(0, 30_000, 2))) == list(range(1, 30_000, 2))
    assert constant_positions(args[:3], (1,)) == [0, 2]
