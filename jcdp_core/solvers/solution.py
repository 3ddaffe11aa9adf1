"""What a solver answers: steps, schedule, and how good they are proved to be."""

from dataclasses import KW_ONLY, dataclass, field

from jcdp_core.chain import JacobianChain
from jcdp_core.operation import Operation
from jcdp_core.schedule import Schedule
from jcdp_core.sequence import EliminationSequence
from jcdp_core.tables import html_table

__all__ = ["Solution"]


@dataclass(frozen=True, repr=False)  # slots would make a TypeError of assigning to a property
class Solution:
    """Hold an elimination sequence with its schedule; numbers after the schedule are given by name.

    Parameters
    ----------
    chain : JacobianChain
        The chain that was solved.
    sequence : EliminationSequence
        The steps.
    schedule : Schedule
        When and where each step runs.
    lower_bound : int
        No sequence and schedule can have a smaller makespan (fma): the optimum on one machine divided by the
        number of machines, that on unlimited machines, or what a search has proved.
    method : str
        Name of the solver.
    seconds : float, optional
        Time that the solver took (s).
    nodes : int or None, optional
        Nodes of the search, if there was one.
    machines : int or None, optional
        Number of machines asked for; None for unlimited.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> print(solve(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=2))
    dp on 2 machines: makespan 47 fma (optimal)
    1: ACC ADJ (0 1)    14 fma  [1,2]  from 0 to 14
    2: ELI TAN (0 1 2)  33 fma  [1,2]  from 14 to 47
    """

    chain: JacobianChain
    sequence: EliminationSequence
    schedule: Schedule
    _: KW_ONLY
    lower_bound: int
    method: str
    seconds: float = field(default=0.0, compare=False)
    nodes: int | None = None
    machines: int | None = None

    @property
    def makespan(self) -> int:
        """Time at which the last step finishes (fma)."""
        return self.schedule.makespan

    @property
    def optimal(self) -> bool:
        """Whether the makespan is proved to be the smallest over all sequences and schedules."""
        return self.makespan == self.lower_bound

    def __repr__(self) -> str:
        """Return the makespan in a line; `print` shows the steps."""
        return f"<Solution by {self._title}>"

    def __str__(self) -> str:
        """Return the makespan and the steps with their machine pools (1-based)."""
        rows = [
            (f"{number}:", str(operation), str(cost), pool, f"from {start} to {finish}")
            for number, operation, cost, pool, start, finish in self._rows()
        ]
        w = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"{number:>{w[0]}} {step:<{w[1]}}  {cost:>{w[2]}} fma  {pool:<{w[3]}}  {times}"
            for number, step, cost, pool, times in rows
        ]
        return "\n".join([self._title, *lines])

    def _repr_html_(self) -> str:
        """Show the steps as a table in a notebook."""
        return html_table(
            self._title, ("step", "operation", "fma", "machines", "start", "finish"), self._rows()
        )

    @property
    def _title(self) -> str:
        """Solver, machines, makespan and what is proved about it."""
        machines = "unlimited machines" if self.machines is None else f"{self.machines} machines"
        proof = "optimal" if self.optimal else f"at least {self.lower_bound}"
        head = f"{self.method} on {'1 machine' if self.machines == 1 else machines}"
        return f"{head}: makespan {self.makespan} fma ({proof})"

    def _rows(self) -> list[tuple[int, Operation, int, str, int, int]]:
        """Return for each step number, operation, cost, machine pool, start and finish."""
        steps = zip(self.sequence.operations, self.sequence.costs, self.schedule.tasks, strict=True)
        return [
            (task.index + 1, operation, cost, task.pool_text(), task.start, task.finish)
            for operation, cost, task in steps
        ]
