"""What every view says about the links and steps of a plan, as plain rows."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from jcdp_core import Mode
from tapesplit.draw.numbers import count, plural, shape_text, shorten
from tapesplit.names import label_of
from tapesplit.planning.plan import CutReason, JacobianPlan
from tapesplit.sweeps.compression import CompressedSweep

__all__ = [
    "STEP_HEAD",
    "LinkRow",
    "StepRow",
    "cheaper_mode",
    "cut_reason_text",
    "link_rows",
    "operation_counts",
    "operation_name",
    "shared_seeds",
    "signature",
    "step_rows",
]


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One link of the chain.

    Parameters
    ----------
    number
        1-based.
    n, m
        Elements that it maps from and to.
    edges
        Scalar edges |E|.
    mode
        Tangent or adjoint: how the plan sweeps it.
    directions
        Directions of that sweep.
    seeds
        Seeds that these share; 0 if each has its own.
    in_rows
        Whether the directions of all rows are carried together.
    operations
        Its operations with their counts, for example "3 dot, 3 tanh".
    """

    number: int
    n: int
    m: int
    edges: int
    mode: Mode
    directions: int
    seeds: int
    in_rows: bool
    operations: str

    @property
    def sweep(self) -> str:
        """How the plan sweeps the link, for example "adjoint × 8", or "adjoint × 3 seeds" that are shared."""
        carried = plural(self.seeds, "seed") if self.seeds else count(self.directions)
        return f"{self.mode.name.lower()} × {carried}" + (" in rows" if self.in_rows else "")


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of the elimination sequence in its place in the schedule.

    Parameters
    ----------
    number
        1-based.
    operation
        In the paper's notation, for example "ELI MUL (0 1 4)".
    mode
        Tangent, adjoint or multiply.
    first, last
        Links that its result covers, 1-based and inclusive.
    machine
        1-based.
    start, finish, cost
        In fma, as it is carried out.
    needs
        Numbers of the steps whose results it takes.
    rows, columns
        Shape of the result.
    """

    number: int
    operation: str
    mode: Mode
    first: int
    last: int
    machine: int
    start: int
    finish: int
    cost: int
    needs: tuple[int, ...]
    rows: int
    columns: int

    @property
    def cells(self) -> tuple[str, ...]:
        """What stands in the columns of a table."""
        times = map(count, (self.start, self.finish, self.cost))
        needs = " ".join(map(str, self.needs)) or "-"
        size = f"{count(self.rows)} × {count(self.columns)}"
        return (str(self.number), self.operation, str(self.machine), *times, needs, size)


STEP_HEAD: Final = ("step", "operation", "machine", "start", "finish", "fma", "needs", "result")
"""Names of these columns."""


def link_rows(plan: JacobianPlan) -> tuple[LinkRow, ...]:
    """Describe the links of the chain, in order.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> plan = parallel_jacobian(lambda x: np.sin(x) * x, machines=1).plan(np.ones(3))
    >>> row, = link_rows(plan)
    >>> row.edges, row.sweep, row.operations
    (9, 'tangent × 3', 'sin, multiply')
    """
    links = plan.chain.links
    how = {step: (task.seeds, task.form == "rows") for task in plan.tasks for step in task.steps}
    swept: dict[int, tuple[Mode, int, int, bool]] = {}
    for step, operation in enumerate(plan.solution.sequence.operations):
        directions = links[operation.i].n if operation.mode is Mode.TANGENT else links[operation.j - 1].m
        swept |= dict.fromkeys(operation.swept, (operation.mode, directions, *how[step]))
    return tuple(
        LinkRow(i + 1, c.n, c.m, c.edges, *swept[i], operation_counts(plan, c.entries.tolist()))
        for i, c in enumerate(plan.chunks)
    )


def step_rows(plan: JacobianPlan) -> tuple[StepRow, ...]:
    """Describe the steps of the elimination sequence, in order."""
    links, (sequence, schedule) = plan.chain.links, plan.carried_out
    return tuple(
        StepRow(
            task.index + 1, str(step), step.mode, step.i + 1, step.j,
            task.machine + 1, task.start, task.finish, cost, tuple(need + 1 for need in needs),
            links[step.j - 1].m, links[step.i].n,
        )
        for step, cost, needs, task in zip(
            sequence.operations, sequence.costs, sequence.predecessors, schedule.tasks, strict=True
        )
    )  # fmt: skip


def shared_seeds(plan: JacobianPlan) -> tuple[str, str] | None:
    """Write how many seeds directions share, and how many directions these are.

    Seeds of dense results, which are swept in the opposite mode, are written as a second number: "3 seeds +
    1". None if each direction has a seed of its own.
    """
    shared = [sweep for sweep in plan.sweeps if isinstance(sweep, CompressedSweep)]
    if not shared:
        return None
    directions = sum(task.directions for task in plan.tasks if task.seeds)
    seeds = plural(sum(sweep.color_count for sweep in shared), "seed")
    back = sum(sweep.left_out.size for sweep in shared)
    return f"{seeds} + {back}" if back else seeds, plural(directions, "direction")


def cut_reason_text(plan: JacobianPlan) -> str:
    """Say in a few words why a plan has its cuts, or none."""
    mode = plan.asked_mode
    return f"method {mode.name.lower()!r} was asked for" if mode else _CUT_REASONS[plan.cut_reason]


_CUT_REASONS: Final[dict[CutReason, str]] = {
    "light": "cuts could save less than a tenth of the time of a call",
    "slower": "cuts would save multiply-adds, but not time: one sweep takes less than several",
    "rows": "rows that stay apart share directions, which saves more",
    "wide": "no interface is narrow enough for a cut to pay",
    "narrow": "cut at narrow interfaces",
    "shared": "cut where machines can share work",
}


def signature(plan: JacobianPlan, width: int) -> str:
    """Write the function's name and shapes, for example "f: (3,) -> (2,)"; a long name gives way first."""
    output, *inputs = plan.shapes
    shapes = f": {', '.join(map(shape_text, inputs))} -> {shape_text(output)}"
    return shorten(shorten(plan.name, max(width - len(shapes), _SHORTEST_NAME)) + shapes, width)


_SHORTEST_NAME: Final = 8
"""Letters that are left of a name at least."""


def cheaper_mode(plan: JacobianPlan) -> tuple[str, int]:
    """Name the cheaper one of the plain modes, with its cost in fma."""
    return min(plan.baselines.items(), key=lambda baseline: baseline[1])


def operation_name(plan: JacobianPlan, entry: int) -> str:
    """Name the operation of a tape entry."""
    return label_of(plan.structure.primitives[entry])


def operation_counts(plan: JacobianPlan, entries: Iterable[int]) -> str:
    """Name the operations of tape entries with their counts, the most frequent first."""
    counts: Counter[str] = Counter()
    for primitive, times in Counter(map(plan.structure.primitives.__getitem__, entries)).items():
        counts[label_of(primitive)] += times
    return ", ".join(f"{times} {name}" if times > 1 else name for name, times in counts.most_common())
