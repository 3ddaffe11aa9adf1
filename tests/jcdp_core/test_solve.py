"""`solve` and the constraints of a problem: names, ranges, messages."""

from dataclasses import FrozenInstanceError, replace
from typing import get_args

import numpy as np
import pytest
from jcdp_strategies import CHAIN_A

from jcdp_core import (
    ArgumentTypeError,
    ElementalJacobian,
    InfeasibleError,
    JacobianChain,
    Problem,
    Solution,
    SolverError,
    solve,
)
from jcdp_core.schedulers import SCHEDULERS, SchedulerName
from jcdp_core.solvers import SOLVERS, SolverName


def test_unknown_methods_are_answered_with_the_known_ones():
    with pytest.raises(SolverError, match=r"no solver 'DP'; choose one of 'brute_force', 'dp'") as caught:
        solve(CHAIN_A, method="DP")
    assert all(repr(name) in str(caught.value) for name in SOLVERS)


@pytest.mark.parametrize(
    ("machines", "error"),
    [(0, SolverError), (-1, SolverError), *((given, ArgumentTypeError) for given in (1.0, True, "2"))],
)
def test_numbers_of_machines_are_positive_integers(machines, error):
    with pytest.raises(error, match=r"machines is .*; give an int ≥ 1, or None"):
        solve(CHAIN_A, machines=machines)


def test_memory_limits_are_positive():
    with pytest.raises(SolverError, match=r"memory_limit is 0; give an int ≥ 1, or None for no limit"):
        solve(CHAIN_A, memory_limit=0)


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        *((given, SolverError) for given in (0, -1.5, float("nan"), np.float32(-1))),
        *((given, ArgumentTypeError) for given in ("3", True, np.bool_(True), [1, 2])),
    ],
)
def test_time_limits_are_positive(limit, error):
    with pytest.raises(error, match=r"time_limit is .*; give seconds > 0"):
        solve(CHAIN_A, time_limit=limit)


def test_wrong_kinds_of_arguments_are_named():
    with pytest.raises(ArgumentTypeError) as caught:
        solve([3, 2, 4])
    assert isinstance(caught.value, TypeError)
    assert str(caught.value) == (
        "chain is the list [3, 2, 4], where a JacobianChain is expected; "
        "build one by JacobianChain.from_sizes(sizes, edges)"
    )
    for name in ("matrix_free", "shared_memory"):
        with pytest.raises(
            ArgumentTypeError, match=f"{name} is the str 'no', where a bool is expected; give True or"
        ):
            solve(CHAIN_A, **{name: "no"})
    assert solve(CHAIN_A, matrix_free=np.bool_(False)).makespan == solve(CHAIN_A, matrix_free=False).makespan
    with pytest.raises(SolverError, match=r"no solver \['dp'\]"):
        solve(CHAIN_A, method=["dp"])


def test_unlimited_machines_cannot_share_memory():
    with pytest.raises(SolverError, match=r"shared_memory=True with machines=None"):
        solve(CHAIN_A, machines=None, shared_memory=True)


def test_infeasible_problems_name_the_link_and_the_reason():
    links = [ElementalJacobian(3, 2, 7), ElementalJacobian(2, 5, 11, tangent=False)]
    with pytest.raises(
        InfeasibleError, match=r"link 2 has no tangent mode, and its adjoint tapes 11 edges where 10"
    ):
        solve(JacobianChain(tuple(links)), memory_limit=10)
    links[0] = ElementalJacobian(3, 2, 7, tangent=False, adjoint=False)
    with pytest.raises(InfeasibleError, match=r"link 1 has neither a tangent nor an adjoint mode"):
        solve(JacobianChain(tuple(links)))


def test_edge_limits():
    assert Problem(CHAIN_A, 4).edge_limit() is None
    assert Problem(CHAIN_A, 4, memory_limit=10).edge_limit(3) == 10
    assert Problem(CHAIN_A, 4, memory_limit=10, shared_memory=True).edge_limit(3) == 30


def test_allowed_modes():
    links = ElementalJacobian(3, 2, 7), ElementalJacobian(2, 5, 11, adjoint=False), ElementalJacobian(5, 1, 2)
    problem = Problem(JacobianChain(links), memory_limit=7)
    assert [problem.tangent_allowed(link) for link in range(3)] == [True, True, True]
    assert [problem.adjoint_allowed(link, link) for link in range(3)] == [True, False, True]
    assert not problem.adjoint_allowed(0, 2)


@pytest.mark.parametrize("method", sorted(SOLVERS))
@pytest.mark.parametrize("machines", [1, 10**12, None])
def test_one_link_is_one_step_however_many_machines(method, machines):
    solution = solve(JacobianChain.from_sizes([3, 2], [7]), machines=machines, method=method)
    assert [str(step) for step in solution.sequence.operations] == ["ACC ADJ (0 1)"]
    assert (solution.makespan, solution.lower_bound, solution.optimal) == (14, 14, True)
    assert solution.schedule.machines == (machines or 1)


def test_brute_force_knows_its_limits():
    with pytest.raises(SolverError, match=r"at most 5 links, not 6"):
        solve(CHAIN_A, method="brute_force")
    chain = JacobianChain.from_sizes([3, 2], [7])
    with pytest.raises(SolverError, match=r"use method='exact' for shared memory"):
        solve(chain, method="brute_force", machines=2, memory_limit=7, shared_memory=True)


def test_solutions_carry_what_was_asked_and_how_long_it_took():
    solution = solve(CHAIN_A, machines=3)
    assert solution.chain is CHAIN_A
    assert solution.method == "dp"
    assert solution.machines == 3
    assert solution.seconds > 0
    assert solution.nodes is None


def test_makespan_and_proof_follow_from_schedule_and_bound():
    solution = solve(CHAIN_A, machines=2)
    assert not solution.optimal
    assert replace(solution, lower_bound=solution.makespan).optimal
    other = replace(solution, schedule=solve(CHAIN_A).schedule)
    assert (other.makespan, other.optimal) == (50977476, False)


def test_text_says_what_is_not_proved():
    solution = solve(CHAIN_A, machines=2)
    assert str(solution).startswith("dp on 2 machines: makespan 30463236 fma (at least 29797092)")
    assert str(solve(CHAIN_A, machines=None)).startswith(
        "dp on unlimited machines: makespan 29797092 fma (optimal)"
    )


@pytest.mark.parametrize("method", sorted(SOLVERS))
def test_very_many_machines_that_share_memory_are_refused(method):
    chain = JacobianChain.from_sizes([5, 6, 7], [10**9, 10**9])
    with pytest.raises(
        SolverError, match=r"2000000000 machines are of use with memory for 1 edges each, and at most 100000"
    ):
        solve(chain, machines=10**10, method=method, memory_limit=1, shared_memory=True)
    assert Problem(chain, 10**5, memory_limit=1, shared_memory=True).useful_machines == 10**5
    assert Problem(chain, 10**10, memory_limit=1).useful_machines == 2


def test_a_limit_beyond_all_floats_is_none():
    assert Problem(CHAIN_A, time_limit=10**400).time_limit == float("inf")
    assert solve(CHAIN_A, machines=2, method="exact", time_limit=10**400).optimal
    with pytest.raises(SolverError, match=r"give seconds > 0"):
        solve(CHAIN_A, time_limit=-(10**400))


def test_flags_of_numpy_become_python_flags():
    problem = Problem(CHAIN_A, matrix_free=np.bool_(False), shared_memory=np.bool_(True))
    assert (problem.matrix_free, problem.shared_memory) == (False, True)
    link = ElementalJacobian(3, 2, 7, adjoint=np.bool_(False))
    assert all(type(flag) is bool for flag in (problem.matrix_free, problem.shared_memory, link.adjoint))


def test_numbers_of_a_solution_are_given_by_name():
    found = solve(CHAIN_A)
    with pytest.raises(TypeError, match="positional"):
        Solution(CHAIN_A, found.sequence, found.schedule, found.makespan, 0, False, "dp")


def test_chains_and_solutions_are_short_in_a_console():
    chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    assert repr(chain) == "JacobianChain.from_sizes([3, 2, 5], [7, 11])"
    costly = JacobianChain((ElementalJacobian(3, 2, 7, tangent_cost=9), ElementalJacobian(2, 5, 11)))
    for given in (chain, costly):
        assert eval(repr(given)) == given  # noqa: S307 (our own text)
    assert repr(solve(chain, machines=2)) == "<Solution by dp on 2 machines: makespan 47 fma (optimal)>"


def test_equal_problems_have_equal_solutions():
    """Whatever the time that they took."""
    first, second = solve(CHAIN_A, machines=2), replace(solve(CHAIN_A, machines=2), seconds=9.0)
    assert first == second
    assert len({first, second}) == 1
    assert first != solve(CHAIN_A, machines=1)


def test_the_types_name_every_solver_and_scheduler():
    assert set(get_args(SolverName)) == set(SOLVERS)
    assert set(get_args(SchedulerName)) == set(SCHEDULERS)


@pytest.mark.parametrize(
    ("part", "name"), [("chain", "sizes"), ("sequence", "total"), ("schedule", "makespan")]
)
def test_what_a_solution_has_is_read_only(part, name):
    solution = solve(CHAIN_A, machines=2)
    for frozen, derived in ((solution, "makespan"), (getattr(solution, part), name)):
        with pytest.raises(FrozenInstanceError):
            setattr(frozen, derived, 1)
