"""The paper's six recurrences as one table, filled diagonal by diagonal with whole-array operations.

Three ideas keep a diagonal cheap. Eliminations go through a single link: a longer one is a run of those on
the same pool and costs the same, so each cell looks at two instead of all. Every value is stored twice, by
where its sub-chain starts and by where it ends, so that both factors of all splits of a diagonal are
rectangular slices. And the best ways to split t = 2, …, m machines over two factors come from one merge of
two sorted lists, see `_merge_descending`.
"""

from functools import cached_property
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np

from jcdp_core.errors import SolverError
from jcdp_core.operation import Mode
from jcdp_core.solvers.problem import Problem

__all__ = ["MakespanTable", "TableSizeError"]

_Numbers: TypeAlias = np.ndarray[Any, Any]

_LastStep: TypeAlias = tuple[Mode, int, int]
"""Kind of an elimination, its position k, and for a product the machines of the later factor: 0 for all, if
the factors do not share out the machines."""

_MOST_CELLS: Final = 1 << 27
"""Cells of the largest table that is built: 2 GB, as each is stored twice."""

_CELLS_OF_AN_OBJECT: Final = 3
"""Cells whose memory a Python integer takes with its place in the table, measured."""

_BLOCK: Final = 1 << 16
"""Products that are looked at together: half a megabyte for each intermediate result, which caches hold."""

_BUFFER: Final = 1024
"""Numbers that NumPy buffers at a time. Since 2.3 it copies rows that do not follow each other into buffers,
as many as these hold: with the default of 8192 numbers, the table of a long chain takes a third longer."""


class TableSizeError(SolverError):
    """The table would take too much memory; other solvers do without it then."""


class MakespanTable:
    """Hold the optimal makespan of the recurrence for each sub-chain and each number of machines.

    Row t holds f[·, ·, t] for t machines, row 0 the values for unlimited machines (left out for one machine,
    where it is of no use). The numbers are 64-bit integers where a bound known in advance shows that they
    suffice, else Python integers.

    Parameters
    ----------
    problem : Problem
        A feasible problem.

    Raises
    ------
    TableSizeError
        If the table would take more than 2 GB: the chain is very long, or machines are very many.

    Notes
    -----
    O(q³ m log m) array-element operations and O(q² m) numbers for q links and m machines; q³/6 splits are
    looked at. Machines beyond q count only with shared memory, up to as many as hold the tapes of all links
    at once.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2 and 3, all recurrences. Batcher 1968 for the merge.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> table = MakespanTable(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=2))
    >>> table.value(0, 2, 1), table.value(0, 2, 2), table.value(0, 2, 0)
    (47, 47, 47)
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        chain = problem.chain
        self.length = q = len(chain)
        # With as many machines as all links need for their tapes at once, each factor of each product can
        # have as many as it can use: rows beyond would not differ.
        self.machines = problem.useful_machines if problem.machines else 0
        # Rows beyond the last number of machines stay zero: they only pad the merge to a power of two.
        rows = 1 + max(self.machines, _power_of_two(self.machines - 1))
        # Infeasible values are one more than any feasible one; adding two of them and a step must not
        # overflow.
        self.infeasible = _largest_makespan(problem) + 1
        self.dtype = np.dtype(np.int64 if 3 * self.infeasible < 2**63 else object)
        cells = q * q * (1 if self.dtype == np.int64 else _CELLS_OF_AN_OBJECT)
        if 2 * cells > _MOST_CELLS:
            raise TableSizeError(
                f"the table of the dynamic program for {q} links would take {32 * cells >> 30} GB even for "
                "one machine; solve parts of the chain"
            )
        if rows * cells > _MOST_CELLS:
            raise TableSizeError(
                f"the table of the dynamic program for {q} links and {self.machines} machines of use would "
                f"take {16 * rows * cells >> 30} GB; give fewer machines, or a larger memory_limit if they "
                "share memory"
            )
        self.rows = slice(1 if problem.machines == 1 else 0, self.machines + 1)
        self.sizes = np.array(chain.sizes, self.dtype)
        self.tangent_costs = np.array(chain.tangent_costs, self.dtype)
        self.adjoint_costs = np.array(chain.adjoint_costs, self.dtype)
        # starts[t, i, p] is the sub-chain of p links that starts at link i; ends[t, j, q-p] the one that ends
        # at j.
        self.starts = np.zeros((rows, q, q + 1), self.dtype)
        self.ends = np.zeros((rows, q, q + 1), self.dtype)
        self._accumulate()
        with np.errstate():  # restores the size of buffers at its end
            np.setbufsize(_BUFFER)
            for length in range(2, q + 1):
                self._fill_diagonal(length)

    def value(self, i: int, j: int, machines: int) -> int:
        """Return the makespan of the sub-chain between positions i and j, by row."""
        return int(self.starts[machines, i, j - i])

    def last_step(self, i: int, j: int, row: int) -> _LastStep:
        """Return the last step of a sub-chain of several links.

        Among equally good ones it is the one that the paper's loop over the split point meets first: products
        and tangent eliminations in ascending order of the split, adjoint ones in descending order, so that
        eliminations are long.
        """
        value = self.starts[row, i, j - i]
        products, splits = self._products(i, j, row)
        hits = [products == value]
        if self.problem.matrix_free:
            hits += [self._long_tangents(i, j, row) == value, self._long_adjoints(i, j, row) == value]
        nearest, kind = divmod(int(np.argmax(np.array(hits).T)), len(hits))
        if kind == 0:
            return Mode.MULTIPLY, i + nearest + 1, int(splits[nearest])
        return (Mode.TANGENT, i + nearest + 1, 0) if kind == 1 else (Mode.ADJOINT, j - nearest - 1, 0)

    def _products(self, i: int, j: int, row: int) -> tuple[_Numbers, _Numbers]:
        """Return the value of each product (i k j), k = i+1, …, j-1, and its later factor's machines or 0."""
        q, length = self.length, j - i
        earlier, later = self.starts[:, i, 1:length], self.ends[:, j - 1, q - length + 1 : q]
        joined = earlier[row] + later[row] if row else np.maximum(earlier[0], later[0])
        splits = np.zeros(length - 1, int)
        if row > 1:
            parallel = np.maximum(later[1:row], earlier[row - 1 : 0 : -1])
            fastest = parallel.min(axis=0)
            splits = np.where(fastest < joined, 1 + parallel.argmin(axis=0), 0)
            joined = np.minimum(joined, fastest)
        return joined + self.sizes[i] * self.sizes[j] * self.sizes[i + 1 : j], splits

    def _long_tangents(self, i: int, j: int, row: int) -> _Numbers:
        """Return the value of each tangent elimination (i k j), k = i+1, …, j-1; -1 if it is not allowed."""
        swept = self._tangent_sums[j] - self._tangent_sums[i + 1 : j]
        allowed = self._tangent_gaps[j] == self._tangent_gaps[i + 1 : j]
        return np.where(allowed, self.starts[row, i, 1 : j - i] + self.sizes[i] * swept, -1)

    def _long_adjoints(self, i: int, j: int, row: int) -> _Numbers:
        """Return the value of each adjoint elimination (i k j), k = j-1, …, i+1; -1 if it is not allowed."""
        q, middle = self.length, slice(j - 1, i, -1)
        swept = self._adjoint_sums[middle] - self._adjoint_sums[i]
        allowed = self._adjoint_gaps[middle] == self._adjoint_gaps[i]
        limit = self._edge_limit(row)
        if limit is not None:
            allowed &= self._edge_sums[middle] - self._edge_sums[i] <= limit
        values = self.ends[row, j - 1, q - 1 : q - (j - i) : -1] + self.sizes[j] * swept
        return np.where(allowed, values, -1)

    @cached_property
    def _fits(self) -> _Numbers | None:
        """Whether the tape of each single link fits, by row and link; None if there is no limit."""
        limits = [self._edge_limit(row) for row in range(self.rows.start, self.rows.stop)]
        if limits[0] is None:
            return None
        return np.array(self.problem.chain.edges, object) <= np.array(limits, object)[:, None]

    def _edge_limit(self, row: int) -> int | None:
        """Return the edges that a step may tape, by row; row 0 may use the memory of all machines."""
        return self.problem.edge_limit(row or self.problem.machines or 1)

    @cached_property
    def _tangent_sums(self) -> _Numbers:
        """Tangent costs summed up to each position."""
        return self._sums(self.problem.chain.tangent_costs)

    @cached_property
    def _adjoint_sums(self) -> _Numbers:
        """Adjoint costs summed up to each position."""
        return self._sums(self.problem.chain.adjoint_costs)

    @cached_property
    def _edge_sums(self) -> _Numbers:
        """Edges summed up to each position."""
        return np.array([0, *accumulate(self.problem.chain.edges)], object)

    @cached_property
    def _tangent_gaps(self) -> _Numbers:
        """Number of links without tangent mode up to each position."""
        return np.array([0, *accumulate(not link.tangent for link in self.problem.chain.links)])

    @cached_property
    def _adjoint_gaps(self) -> _Numbers:
        """Number of links without adjoint mode up to each position."""
        return np.array([0, *accumulate(not link.adjoint for link in self.problem.chain.links)])

    def _sums(self, costs: tuple[int, ...]) -> _Numbers:
        """Sum up to each position."""
        return np.array([0, *accumulate(costs)], self.dtype)

    def _accumulate(self) -> None:
        """Fill the cells of single links."""
        cheapest = np.minimum(self._tangents.diagonal(), self._adjoints(1))
        self.starts[self.rows, :, 1] = cheapest
        self.ends[self.rows, :, self.length - 1] = cheapest

    def _fill_diagonal(self, length: int) -> None:
        """Fill the cells of all sub-chains of one length."""
        q, rows = self.length, self.rows
        best = self._multiply(length)
        if self.problem.matrix_free:
            self._eliminate(best, length)
        np.minimum(best, self.infeasible, out=best)
        self.starts[rows, : q - length + 1, length] = best
        self.ends[rows, length - 1 :, q - length] = best

    def _multiply(self, length: int) -> _Numbers:
        """Return the cheapest product for each sub-chain of one length."""
        count = self.length - length + 1
        step = 1 + _BLOCK // (len(self.starts) * length)
        blocks = [slice(first, min(first + step, count)) for first in range(0, count, step)]
        best = [self._multiply_some(length, block) for block in blocks]
        return np.concatenate(best, axis=1) if len(best) > 1 else best[0]

    def _multiply_some(self, length: int, block: slice) -> _Numbers:
        """Return the cheapest product for some sub-chains of one length, by where they start."""
        q, m, rows = self.length, self.machines, self.rows
        # Axis 1: where the sub-chain starts; axis 2: how many links the earlier factor has, 1, …, length-1.
        earlier = self.starts[:, block, 1:length]
        later = self.ends[:, length - 1 :, q - length + 1 : q][:, block]
        joined = earlier[rows] + later[rows]
        if rows.start == 0:
            np.maximum(earlier[0], later[0], out=joined[0])
        if m > 1:
            parallel = _merge_descending(earlier[1:], later[1:], _power_of_two(m - 1))
            np.minimum(joined[2:], parallel[: m - 1], out=joined[2:])
        joined += self._middles[block, 1:length] * self._outer.diagonal(length)[block, None]
        return joined.min(axis=2)

    @cached_property
    def _outer(self) -> _Numbers:
        """Elements of the Jacobian between each two positions; the diagonal is unused, and may overflow."""
        return self.sizes[:, None] * self.sizes

    @cached_property
    def _middles(self) -> _Numbers:
        """Sizes of z_{i+p} by start i and length p, the middle dimension of a product: a view of a line."""
        padded = np.concatenate([self.sizes, self.sizes])
        return np.lib.stride_tricks.as_strided(padded, (self.length, self.length), 2 * padded.strides)

    def _eliminate(self, best: _Numbers, length: int) -> None:
        """Lower `best` where eliminating the last link by tangents or the first by adjoints is cheaper."""
        q, rows = self.length, self.rows
        without_last = self.starts[rows, : q - length + 1, length - 1]
        np.minimum(best, without_last + self._tangents.diagonal(length - 1), out=best)
        without_first = self.ends[rows, length - 1 :, q - length + 1]
        np.minimum(best, without_first + self._adjoints(length), out=best)

    @cached_property
    def _tangents(self) -> _Numbers:
        """Cost of sweeping link j with as many tangents as link i has inputs, by i and j."""
        allowed = np.array([link.tangent for link in self.problem.chain.links])
        return np.where(allowed, self.sizes[:-1, None] * self.tangent_costs, self.infeasible)

    def _adjoints(self, length: int) -> _Numbers:
        """Return the cost of sweeping the first link of each sub-chain with adjoints.

        It is given by row of the table if there is a memory limit, else once for all rows.
        """
        costs = self._all_adjoints.diagonal(length - 1)
        return costs if self._fits is None else np.where(self._fits[:, : len(costs)], costs, self.infeasible)

    @cached_property
    def _all_adjoints(self) -> _Numbers:
        """Cost of sweeping link i with as many adjoints as link j has outputs, by i and j; no limit."""
        allowed = np.array([link.adjoint for link in self.problem.chain.links])
        costs = self.adjoint_costs[:, None] * self.sizes[1:]
        return np.where(allowed[:, None], costs, self.infeasible)


def _largest_makespan(problem: Problem) -> int:
    """Bound every feasible value and every step: accumulate all links, then multiply one by one.

    The problem must be feasible. No solution of the dynamic program takes longer than the result (fma).

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> _largest_makespan(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11])))
    170
    """
    chain = problem.chain
    cost = max(*chain.tangent_costs, *chain.adjoint_costs)
    sizes = sorted(chain.sizes)
    triple = sizes[-1] * sizes[-2] * sizes[-3] if len(sizes) > 2 else 0
    return len(chain) * (sizes[-1] * cost + triple)


def _power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least `number`; 0 for numbers below 1."""
    return 1 << (number - 1).bit_length() if number > 0 else 0


def _merge_descending(left: _Numbers, right: _Numbers, count: int) -> _Numbers:
    """Return the `count` (a power of two) largest of two lists, sorted; lists run along axis 0 and descend.

    Entry t-2 of the result is min over s of max(left[s], right[t-s]), the best split of t machines: handing
    out machines one by one, the next always goes to the side that takes longer, which walks through both
    lists in descending order. A bitonic network (Batcher 1968) merges without a branch.
    """
    merged = np.maximum(left[:count], right[:count][::-1])
    distance = count // 2
    while distance:
        pairs = merged.reshape(-1, 2, distance, *merged.shape[1:])
        merged = np.empty_like(pairs)
        np.maximum(pairs[:, 0], pairs[:, 1], out=merged[:, 0])
        np.minimum(pairs[:, 0], pairs[:, 1], out=merged[:, 1])
        merged = merged.reshape(count, *pairs.shape[3:])
        distance //= 2
    return merged
