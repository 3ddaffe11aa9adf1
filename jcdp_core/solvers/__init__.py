"""Solvers: from a chain to an elimination sequence and its schedule, all behind one function."""

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Final, Literal, TypeAlias

from jcdp_core.chain import JacobianChain
from jcdp_core.errors import SolverError
from jcdp_core.solvers.brute_force import solve_brute_force
from jcdp_core.solvers.dynamic_programming import solve_dynamic_programming
from jcdp_core.solvers.exact import solve_exact
from jcdp_core.solvers.heuristic import solve_heuristic
from jcdp_core.solvers.problem import Problem
from jcdp_core.solvers.solution import Solution

__all__ = ["SOLVERS", "Problem", "Solution", "SolverName", "solve"]

SolverName: TypeAlias = Literal["brute_force", "dp", "exact", "heuristic"]
"""Solvers by the name that `solve` knows them by."""

SOLVERS: Final[dict[SolverName, Callable[[Problem], Solution]]] = {
    "brute_force": solve_brute_force,
    "dp": solve_dynamic_programming,
    "exact": solve_exact,
    "heuristic": solve_heuristic,
}
"""Solvers by their names; each takes a `Problem` and returns a `Solution`."""


def solve(
    chain: JacobianChain,
    *,
    machines: int | None = 1,
    method: SolverName = "dp",
    matrix_free: bool = True,
    memory_limit: int | None = None,
    shared_memory: bool = False,
    time_limit: float | None = None,
) -> Solution:
    """Plan how to compute the Jacobian of a chain in the least time.

    Parameters
    ----------
    chain : JacobianChain
        The chain.
    machines : int or None, optional
        Number of machines; None for as many as can be used.
    method : {"dp", "heuristic", "exact", "brute_force"}, optional
        Name of the solver: `"dp"` is the dynamic program of the paper, `"heuristic"` is never worse, and
        mostly optimal up to some 16 links, `"exact"` proves the optimum, `"brute_force"` tries everything
        (at most 5 links, no shared memory).
    matrix_free : bool, optional
        Whether tangent and adjoint eliminations are allowed; else only accumulations and products.
    memory_limit : int, optional
        Edges that each machine can tape; limits adjoint steps.
    shared_memory : bool, optional
        Whether a step whose pool has t machines may tape t times as much.
    time_limit : float, optional
        Seconds after which a search returns the best that it knows. The dynamic program is never interrupted.
        Searches run it first on chains of more than 12 links, and last where they end without a proof; it
        takes one or two seconds for 150 links on 150 machines, and twenty times as long where costs have more
        than 18 digits. `"brute_force"` ignores the limit.

    Returns
    -------
    Solution
        Steps, schedule, makespan (fma), and a lower bound.

    Raises
    ------
    SolverError
        If the method is unknown or cannot take the problem, or a setting is out of range.
    ArgumentTypeError
        If the chain or a setting has the wrong type.
    InfeasibleError
        If no sequence satisfies the constraints.

    References
    ----------
    Märtens & Naumann 2025.

    Examples
    --------
    >>> chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    >>> solution = solve(chain, machines=2)
    >>> solution.makespan, solution.optimal
    (47, True)
    """
    if not isinstance(method, str) or method not in SOLVERS:
        raise SolverError(
            f"there is no solver {method!r}; choose one of {', '.join(map(repr, sorted(SOLVERS)))}"
        )
    problem = Problem(chain, machines, matrix_free, memory_limit, shared_memory, time_limit)
    begin = perf_counter()
    return replace(SOLVERS[method](problem), seconds=perf_counter() - begin)
