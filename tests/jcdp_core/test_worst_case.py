"""The dynamic program's distance from the optimum: within the bound, and near it on the worst chains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jcdp_strategies import CHAIN_A, chains, deterministic

from jcdp_core import (
    ArgumentTypeError,
    InvalidChainError,
    Problem,
    check_sequence,
    comb_sequence,
    makespans,
    schedule_sequence,
    solve,
    worst_case_bound,
    worst_case_chain,
)


@deterministic
@given(chains(max_length=4), st.integers(1, 5), st.booleans())
def test_the_bound_holds(chain, machines, matrix_free):
    problem = Problem(chain, machines, matrix_free=matrix_free)
    optimum = solve(chain, machines=machines, matrix_free=matrix_free, method="brute_force").makespan
    found = solve(chain, machines=machines, matrix_free=matrix_free).makespan
    assert optimum >= worst_case_bound(problem) * found


@pytest.mark.parametrize(("machines", "bound"), [(1, 1), (2, 1 / 2), (3, 1 / 3), (4, 1 / 3), (None, 1 / 3)])
def test_the_bound_of_the_paper_example(machines, bound):
    # Its unlimited solution uses three machines.
    assert worst_case_bound(Problem(CHAIN_A, machines)) == bound
    assert worst_case_bound(Problem(CHAIN_A, machines, memory_limit=10**6)) == bound


def test_shared_memory_bounds_by_all_machines():
    assert worst_case_bound(Problem(CHAIN_A, 5, memory_limit=10**6, shared_memory=True)) == 1 / 5


@pytest.mark.parametrize("machines", [2, 3, 4])
def test_the_ratio_tends_to_the_bound(machines):
    ratios = []
    for length in (6, 12, 24, 48):
        chain = worst_case_chain(length, growth=64)
        comb = comb_sequence(chain)
        check_sequence(chain, comb)
        shared_out = schedule_sequence(
            comb, machines=machines, method="highest_level_first"
        ).schedule.makespan
        ratios.append(shared_out / solve(chain, machines=machines).makespan)
        assert worst_case_bound(Problem(chain, machines)) == 1 / machines
    assert ratios == sorted(ratios, reverse=True)
    assert 1 / machines < ratios[-1] < 1.1 / machines


def test_the_bound_is_that_of_a_problem():
    with pytest.raises(
        ArgumentTypeError,
        match=r"problem is a JacobianChain, where a Problem is expected; give Problem\(chain, machines=…\)",
    ):
        worst_case_bound(worst_case_chain(3))


@pytest.mark.parametrize("length", [4, 8, 18, 24, 40])
def test_one_machine_is_left_with_what_the_others_do_not_take(length):
    alone, *others = makespans(Problem(worst_case_chain(length), machines=4))
    for machines, found in enumerate(others, start=2):
        assert found / alone == pytest.approx((length - machines + 1) / length, abs=1e-2 / length)


def test_the_worst_chain_needs_a_length():
    with pytest.raises(InvalidChainError, match="length is None; give an int ≥ 1"):
        worst_case_chain(None)


@pytest.mark.parametrize("given", ["3", 3.0, True, 0, -2])
def test_numbers_of_the_worst_chain_are_positive_integers(given):
    with pytest.raises(InvalidChainError, match=r"length is .*; give an int ≥ 1"):
        worst_case_chain(given)
    with pytest.raises(InvalidChainError, match=r"growth is .*; give an int ≥ 2"):
        worst_case_chain(3, growth=given)


def test_sizes_that_do_not_fall_are_refused():
    with pytest.raises(InvalidChainError, match=r"growth is 1; give an int ≥ 2"):
        worst_case_chain(8, growth=1)


def test_numbers_of_numpy_are_welcome():
    assert worst_case_chain(np.int8(9), np.int8(64)) == worst_case_chain(9, 64)


def test_other_arguments_are_named():
    with pytest.raises(ArgumentTypeError, match=r"chain is the int 3, where a JacobianChain is expected"):
        comb_sequence(3)
    with pytest.raises(ArgumentTypeError, match=r"problem is a JacobianChain, where a Problem is expected"):
        makespans(worst_case_chain(3))
