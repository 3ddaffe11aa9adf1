"""The paper's six recurrences as they are printed, number by number.

That is quickest for a few links: one operation on arrays takes as long as a dozen on numbers.
"""

from itertools import accumulate

from jcdp_core.operation import Mode
from jcdp_core.solvers.dp_table import LastStep, largest_makespan
from jcdp_core.solvers.problem import Problem

__all__ = ["ShortTable"]

_MOST_ROWS = 9
"""Rows up to which plain numbers are quicker for some chains: with more, each product has too many splits."""

_MOST_WORK = 2200
"""Rows times cubed links up to which they are, measured: 13 links on one machine, 9 on two, 6 on eight."""


class ShortTable:
    """Hold what `MakespanTable` holds, and the last step of each sub-chain.

    Parameters
    ----------
    problem : Problem
        A feasible problem.

    Notes
    -----
    O(q³ m²) time for q links and m machines.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2 and 3, all recurrences.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> table = ShortTable(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=2))
    >>> table.value(0, 2, 1), table.value(0, 2, 2), table.value(0, 2, 0)
    (47, 47, 47)
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        links = problem.chain.links
        self.length = q = len(links)
        self.machines = problem.useful_machines if problem.machines else 0
        self.infeasible = none = largest_makespan(problem) + 1
        self._sizes = problem.chain.sizes
        # No sweep runs through a link without the mode: that takes too long.
        free = problem.matrix_free
        tangents = [link.tangent_cost if free and link.tangent else none for link in links]
        adjoints = [link.adjoint_cost if free and link.adjoint else none for link in links]
        self._tangents = [0, *accumulate(tangents)]
        self._adjoints = [0, *accumulate(adjoints)]
        self._edges = [0, *accumulate(problem.chain.edges)]
        self._values = [[[0] * (q + 1) for _ in range(q)] for _ in range(self.machines + 1)]
        self._last_steps: dict[tuple[int, int, int], LastStep] = {}
        for row in range(1 if problem.machines == 1 else 0, self.machines + 1):
            self._fill(row)

    @staticmethod
    def is_quick(problem: Problem) -> bool:
        """Tell whether plain numbers are quicker than arrays."""
        machines = problem.machines and problem.useful_machines
        rows = machines + 1 if machines and machines > 1 else 1
        return rows <= _MOST_ROWS and rows * len(problem.chain) ** 3 <= _MOST_WORK

    def value(self, i: int, j: int, row: int) -> int:
        """Return the makespan of the sub-chain between positions i and j, by row."""
        return self._values[row][i][j]

    def last_step(self, i: int, j: int, row: int) -> LastStep:
        """Return the last step of a sub-chain of several links, as `MakespanTable.last_step` does."""
        return self._last_steps[i, j, row]

    def _fill(self, row: int) -> None:
        """Fill the cells of a row."""
        pool_size = row or self.problem.machines or 1
        limit = self.problem.edge_limit(pool_size)
        for i, link in reversed(list(enumerate(self.problem.chain.links))):
            tangent = link.n * link.tangent_cost if link.tangent else self.infeasible
            adjoint = link.adjoint and (limit is None or link.edges <= limit)
            self._values[row][i][i + 1] = min(tangent, link.m * link.adjoint_cost) if adjoint else tangent
            for j in range(i + 2, self.length + 1):
                self._values[row][i][j], self._last_steps[i, j, row] = self._best(i, j, row, limit)

    def _best(self, i: int, j: int, row: int, limit: int | None) -> tuple[int, LastStep]:
        """Return the makespan of a sub-chain, and the first step with it in the order of the paper's loop."""
        tangents, adjoints, values = self._tangents, self._adjoints, self._values[row]
        n, m, earlier = self._sizes[i], self._sizes[j], values[i]
        outer, all_tangents = n * m, tangents[j]
        least, step = self.infeasible, (Mode.MULTIPLY, i + 1, 0)
        back = j
        for k in range(i + 1, j):
            back -= 1
            first, second = earlier[k], values[k][j]
            if row > 1:
                makespan, split = self._split(i, k, j, row)
            else:
                makespan, split = first + second if row else max(first, second), 0
            makespan += outer * self._sizes[k]
            if makespan < least:
                least, step = makespan, (Mode.MULTIPLY, k, split)
            makespan = first + n * (all_tangents - tangents[k])
            if makespan < least:
                least, step = makespan, (Mode.TANGENT, k, 0)
            makespan = values[back][j] + m * (adjoints[back] - adjoints[i])
            if makespan < least and (limit is None or self._edges[back] - self._edges[i] <= limit):
                least, step = makespan, (Mode.ADJOINT, back, 0)
        return least, step

    def _split(self, i: int, k: int, j: int, row: int) -> tuple[int, int]:
        """Return the least time for both factors of a product, and the machines of the later one or 0."""
        least, split = self._values[row][i][k] + self._values[row][k][j], 0
        for share in range(1, row):
            makespan = max(self._values[share][k][j], self._values[row - share][i][k])
            if makespan < least:
                least, split = makespan, share
        return least, split
