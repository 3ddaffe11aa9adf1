"""How far the dynamic program can be from the optimum: a bound, and chains that come close to it."""

from dataclasses import replace
from itertools import pairwise
from typing import Final

from jcdp_core.arguments import expect, positive_integer
from jcdp_core.chain import CHAIN_ADVICE, ElementalJacobian, JacobianChain
from jcdp_core.errors import InvalidChainError
from jcdp_core.operation import Action, Mode, Operation
from jcdp_core.sequence import EliminationSequence
from jcdp_core.solvers.dynamic_programming import solve_dynamic_programming
from jcdp_core.solvers.problem import Problem

__all__ = ["comb_sequence", "worst_case_bound", "worst_case_chain"]


def worst_case_bound(problem: Problem) -> float:
    """Bound the ratio optimum/DP from below, by the machines that can be of use.

    The dynamic program never takes longer than on one machine, where it does the least work W there is, and
    on m machines no schedule takes less than W/m. With as many machines as the unlimited solution uses it is
    optimal.

    Parameters
    ----------
    problem : Problem
        Chain, machines and constraints.

    Returns
    -------
    float
        1/min(m, m*), m* being the number of machines of the unlimited solution, or 1/m if machines share
        memory; the ratio is never smaller.

    Raises
    ------
    InfeasibleError
        If a link has no mode that is allowed.
    ArgumentTypeError
        If the argument is no problem.

    References
    ----------
    Märtens & Naumann 2025, Sec. 3.

    Examples
    --------
    >>> worst_case_bound(Problem(JacobianChain.from_sizes([9, 2, 9], [50, 50]), machines=8))
    0.5
    """
    expect(problem, Problem, "problem", "give Problem(chain, machines=…)")
    if problem.pools_matter:
        # Pools have less memory than the unlimited solution may need: its number of machines proves nothing.
        return 1 / (problem.machines or 1)
    useful = solve_dynamic_programming(replace(problem, machines=None, shared_memory=False)).schedule.machines
    return 1 / min(useful, problem.machines or useful)


def worst_case_chain(length: int, growth: int | None = None) -> JacobianChain:
    """Build a chain on which the dynamic program takes almost m times as long as necessary.

    Only tangents are available. All accumulations cost the same, c. Sweeping a link for a product that
    starts earlier costs at least `growth` times c, because the sizes fall by that factor from link to link.
    Products that end with the last link, which has one output, cost next to nothing; all others cost far
    more than everything else. If `growth` is at least q, no sweep pays: the only good sequences multiply
    from the last link to the first, and their precedence tree is a comb. On m machines its q accumulations
    can be shared out evenly, in about q/m·c. The dynamic program splits the machines at each product between
    a single accumulation and the rest of the comb, which leaves (q-m+1)·c to one machine.

    Parameters
    ----------
    length : int
        Number of links q.
    growth : int, optional
        Factor between neighboring sizes, at least 2; by default q, but at least 16. The ratio tends to 1/m as
        both numbers grow.

    Returns
    -------
    JacobianChain
        The chain. Its makespans have about 11·q·log10(growth) digits; the solvers compute with all of them,
        which takes seconds from 100 links on, and which no time limit stops in the dynamic program. Python
        prints integers of up to 4300 digits only, see `sys.set_int_max_str_digits`.

    Raises
    ------
    InvalidChainError
        If the length is no positive integer, or the growth none of at least 2.

    References
    ----------
    Märtens & Naumann 2025, Sec. 3, ask for synthetic chains near the bound; this family is our own.

    Examples
    --------
    >>> from jcdp_core import Problem, makespans
    >>> one, two = makespans(Problem(worst_case_chain(8), machines=2))
    >>> round(two / one, 3)
    0.875
    """
    links = positive_integer(length)
    growth = max(links, _LEAST_GROWTH) if growth is None else growth
    factor = positive_integer(growth)
    for name, given, number, least in (("length", length, links, 1), ("growth", growth, factor, 2)):
        if number < least:
            raise InvalidChainError(f"{name} is {given!r}; give an int ≥ {least}")
    # Products on the comb cost at most smallest²·growth^(2q), others at least smallest³; c lies between.
    smallest = factor ** (4 * links + 4)
    accumulation = smallest**2 * factor ** (3 * links + 2)
    sizes = [smallest * factor ** (links - 1 - i) for i in range(links)] + [1]
    return JacobianChain(
        tuple(ElementalJacobian(n, m, accumulation // n, adjoint=False) for n, m in pairwise(sizes))
    )


_LEAST_GROWTH: Final = 16
"""Growth of short chains, where a smaller one would leave ratios far from those of long chains."""


def comb_sequence(chain: JacobianChain) -> EliminationSequence:
    """Accumulate all links by tangents and multiply from the last to the first.

    Parameters
    ----------
    chain : JacobianChain
        The chain.

    Returns
    -------
    EliminationSequence
        2q-1 steps.

    Raises
    ------
    ArgumentTypeError
        If the chain is something else.

    Examples
    --------
    >>> print(comb_sequence(JacobianChain.from_sizes([2, 2, 2, 2], [3, 3, 3])).bracketing())
    ((F3 F2) F1)
    """
    expect(chain, JacobianChain, "chain", CHAIN_ADVICE)
    steps: list[Operation] = []
    for i in reversed(range(len(chain))):
        steps.append(Operation(Action.ACCUMULATE, Mode.TANGENT, i, None, i + 1))
        if i + 1 < len(chain):
            steps.append(Operation(Action.ELIMINATE, Mode.MULTIPLY, i, i + 1, len(chain)))
    return EliminationSequence.from_operations(chain, steps)
