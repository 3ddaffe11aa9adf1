"""The search space of the exact solver: for each sub-chain, the last steps that can make its Jacobian.

Eliminations sweep a single link here. That loses nothing: a longer elimination is a run of such steps at the
same total cost, and the run may stop on the way and change machines. Neighbors are merged again when a
solution is written down.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from jcdp_core.operation import Action, Mode, Operation
from jcdp_core.solvers.problem import Problem

__all__ = ["Placement", "Step", "StepTable", "single_link_steps"]

Step: TypeAlias = tuple[int, int, tuple[int, ...]]
"""Duration (fma), machines that it occupies, and the sub-chains whose Jacobians it needs."""

Placement: TypeAlias = tuple[int, int, Step]
"""Start time (fma), the sub-chain whose Jacobian is made, and the step that makes it."""


@dataclass(frozen=True, slots=True)
class StepTable:
    """Hold the steps of all sub-chains; the sub-chain from link i to link j (0-based) has the number i·q + j.

    Plain tuples of integers, because the search reads little else.

    Parameters
    ----------
    length : int
        Number of links q.
    machines : int
        Machines that can be of use at the same time.
    steps : list of tuple of Step, length q²
        The steps that can make each sub-chain's Jacobian; empty where i > j.
    tangent_seeds : tuple of int, length q
        Cost of accumulating each link by tangents (fma); 0 if that is not allowed.
    horizon : int
        Time (fma) in which any tree's steps, 2q-1 at most, can run one after the other.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Problem
    >>> table = single_link_steps(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=4))
    >>> table.machines, table.whole
    (2, 1)
    >>> table.steps[table.whole]
    ((33, 1, (0,)), (35, 1, (3,)), (30, 1, (3, 0)))
    """

    length: int
    machines: int
    steps: list[tuple[Step, ...]]
    tangent_seeds: tuple[int, ...]
    horizon: int

    @property
    def whole(self) -> int:
        """Number of the whole chain among its sub-chains."""
        return self.length - 1

    def operation(self, part: int, step: Step) -> Operation:
        """Name a step as the paper does.

        `part` is the sub-chain whose Jacobian the step, one of ``steps[part]``, makes.

        Examples
        --------
        >>> from jcdp_core import JacobianChain, Problem
        >>> table = single_link_steps(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11])))
        >>> [str(table.operation(1, step)) for step in table.steps[1]]
        ['ELI TAN (0 1 2)', 'ELI ADJ (0 1 2)', 'ELI MUL (0 1 2)']
        """
        first, last = divmod(part, self.length)
        duration, _, needs = step
        if not needs:
            tangent = duration == self.tangent_seeds[first]  # no adjoint is listed that takes as long
            return Operation(
                Action.ACCUMULATE, Mode.TANGENT if tangent else Mode.ADJOINT, first, None, first + 1
            )
        mode, middle = Mode.MULTIPLY, needs[0] // self.length
        if len(needs) == 1:
            starts_later = middle > first
            mode, middle = (Mode.ADJOINT, first + 1) if starts_later else (Mode.TANGENT, last)
        return Operation(Action.ELIMINATE, mode, first, middle, last + 1)


def single_link_steps(problem: Problem, on_part: Callable[[], None] | None = None) -> StepTable:
    """List the O(q³) steps that a problem allows.

    With shared memory an adjoint step occupies as many machines as it takes to hold its tape: these form its
    pool. Each link must have a mode that is allowed. `on_part` is called before the sub-chains that start at
    each link; it may raise to give up.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Problem
    >>> chain = JacobianChain.from_sizes([3, 2], [7])
    >>> single_link_steps(Problem(chain, machines=3, memory_limit=4, shared_memory=True)).steps
    [((14, 2, ()), (21, 1, ()))]
    """
    links = problem.chain.links
    q, sizes = len(links), problem.chain.sizes
    limit = problem.machines or q
    tangents = [link.tangent_cost if problem.tangent_allowed(v) else 0 for v, link in enumerate(links)]
    pools = [_adjoint_pool(problem, v) for v in range(q)]
    steps: list[tuple[Step, ...]] = [()] * (q * q)
    for i, link in enumerate(links):
        steps[i * q + i] = _accumulations(
            (link.n * tangents[i], 1, ()), (link.m * link.adjoint_cost, pools[i], ())
        )
        if on_part is not None:
            on_part()
        for j in range(i + 1, q):
            n, m = sizes[i], sizes[j + 1]
            swept: list[Step] = []
            if problem.matrix_free and tangents[j]:
                swept.append((n * tangents[j], 1, (i * q + j - 1,)))
            if problem.matrix_free and pools[i]:
                swept.append((m * link.adjoint_cost, pools[i], ((i + 1) * q + j,)))
            products = [(n * m * sizes[k], 1, (k * q + j, i * q + k - 1)) for k in range(i + 1, j + 1)]
            steps[i * q + j] = (*swept, *products)
    useful = min(limit, sum(max(pool, 1) for pool in pools))
    seeds = tuple(link.n * cost for link, cost in zip(links, tangents, strict=True))
    return StepTable(q, useful, steps, seeds, 2 * q * max([max(some)[0] for some in steps if some]))


def _adjoint_pool(problem: Problem, link: int) -> int:
    """Return how many machines hold the tape of a link, or 0 if its adjoint model cannot run."""
    if problem.memory_limit is None or not problem.shared_memory:
        return int(problem.adjoint_allowed(link, link))
    pool = -(-problem.chain.links[link].edges // problem.memory_limit)
    return pool if problem.adjoint_allowed(link, link, problem.machines or 1) else 0


def _accumulations(tangent: Step, adjoint: Step) -> tuple[Step, ...]:
    """Return the accumulations worth a try; without its mode a tangent costs 0, an adjoint occupies 0."""
    if not tangent[0] or not adjoint[1]:
        return (tangent,) if tangent[0] else (adjoint,)
    if tangent[0] <= adjoint[0]:
        return (tangent,)
    return (adjoint,) if adjoint[1] == 1 else (adjoint, tangent)
