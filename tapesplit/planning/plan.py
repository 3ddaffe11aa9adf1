"""Plans: how the Jacobian of every tape of one structure is computed, and the numbers behind that choice."""

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias

import numpy as np

import jcdp_core
from jcdp_core import EliminationSequence, JacobianChain, Mode, Schedule, Solution
from tapesplit.cuts.chunks import Chunk
from tapesplit.cuts.graph import TapeGraph
from tapesplit.cuts.separators import Separator
from tapesplit.errors import PlanMismatchError
from tapesplit.planning.records import LastRun, TaskRecord
from tapesplit.planning.recost import retimed
from tapesplit.structures.pickling import dumps
from tapesplit.structures.structure import Structure
from tapesplit.sweeps.prediction import Form
from tapesplit.sweeps.scalar_sweep import ScalarSweep
from tapesplit.sweeps.sweep import Sweep

__all__ = ["CutReason", "JacobianPlan", "MachinesReason", "PlanTask", "seconds_of"]


CutReason: TypeAlias = Literal["asked", "light", "slower", "rows", "wide", "narrow", "shared"]
"""Why a tape is cut, or is not.

It is not cut if one mode was "asked" for; if cuts could save so little that none were looked for ("light"),
or would save multiply-adds, but no time ("slower"); if "rows" that stay apart share directions; or if all
interfaces are too "wide". It is cut if some are "narrow", or for several machines to have "shared" work.
"""

MachinesReason: TypeAlias = Literal[
    "single", "core", "light", "steps", "serial", "uneven", "little", "gain", "forced"
]
"""Why a plan is for one machine, or for several.

One works if a "single" one was asked for; if the process may use one "core" only; if the work that releases
the interpreter's lock is too "light" for threads; if sharing large "steps" among threads gains more than
several machines; if the schedule for several leaves all work to one ("serial"), or all heavy tasks
("uneven"); or if the gain would be too "little", less than a fifth. Several work if the "gain" is larger, or
if that was "forced".
"""


@dataclass(frozen=True, slots=True)
class PlanTask:
    """What one machine does without interruption: a product, or a sweep through consecutive links.

    An elimination that continues a sweep of the same mode on the same machine is one sweep with it.

    Parameters
    ----------
    mode
        Tangent, adjoint or multiply.
    first, last
        Links that the resulting Jacobian covers, 0-based and inclusive.
    swept
        Links that are swept through; empty for a product.
    needs
        Tasks whose results it takes: none, one, or (left factor, right factor).
    steps
        Steps of the elimination sequence that it carries out, 0-based.
    machine
        0-based.
    fma
        Planned cost of what is carried out.
    directions
        Directions that a sweep carries: columns of its Jacobian in tangent mode, rows in adjoint mode; 0
        for a product.
    seeds
        Number of seeds if directions share them (one per color plus one per dense result); 0 otherwise.
        Directions of one color have no result in common; a dense result is swept in the other mode.
    seconds
        Predicted time, if nothing else runs.
    start, finish
        When it is predicted to run, in seconds since the execution begins. The start includes the time to
        hand the task to another thread; other machines can make it run longer than ``seconds``.
    form
        How the links are swept: by array steps, as one system over their elements, in stages of both, or by
        array steps that carry rows together.
    obstacle
        First tape entry that cannot be part of a system; None if there is none.
    releases_lock
        Whether other threads can run at the same time.
    product_fma
        Multiply-adds of matrix products.
    shareable
        The part of its seconds that several threads can share: large products, or a large system.
    """

    mode: Mode
    first: int
    last: int
    swept: tuple[int, ...]
    needs: tuple[int, ...]
    steps: tuple[int, ...]
    machine: int
    fma: int
    directions: int = 0
    seeds: int = 0
    seconds: float = 0.0
    start: float = 0.0
    finish: float = 0.0
    form: Form = "arrays"
    obstacle: int | None = None
    releases_lock: bool = False
    product_fma: int = 0
    shareable: float = 0.0


def seconds_of(tasks: Sequence[PlanTask]) -> float:
    """Return when the last task is predicted to finish, in seconds since the execution begins."""
    return max(task.finish for task in tasks)


@dataclass(frozen=True, eq=False)  # slots would make a TypeError of assigning to a property
class JacobianPlan:
    """The plan for tapes of one structure.

    Parameters
    ----------
    name
        Name of the function.
    structure
        What a tape must look like for the plan to fit.
    graph
        Graph of the tape: sizes and scalar edges of its values.
    separators
        Nested vertex separators between the chunks.
    chunks
        Parts of the tape, one for each link of the chain.
    solution
        The Jacobian chain with its elimination sequence and schedule, in fma as if all links were dense: see
        `carried_out` for those that are carried out. Its ``seconds`` are those of the solver.
    tasks
        The sequence as it is executed.
    sweeps
        For each task the compiled links that it sweeps through; None for a product.
    machines
        Threads that work at the same time.
    shapes
        Shape of the output and of each input.
    cut_reason
        Why the tape is cut, or is not.
    machines_reason
        Why so many machines work.
    least_makespan
        Makespan in fma of the sequence that is cheapest in fma, where another one is predicted to be faster;
        else None.
    dtypes
        Type of the Jacobian by each input.
    uses_blas
        Whether there are matrix products large enough for BLAS to use threads of its own.
    step_threads
        Threads that share each large step, a matrix product or a system; 1 if steps are not shared.
    lines
        For each tape entry the user's line of code, "file.py:12", or "" if there is none; set by
        `JacobianFunction.plan` only.
    memory_limit
        The limit that the plan was made for; None if there is none.
    last_run
        Measured times of the last run that used this plan.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> plan = parallel_jacobian(lambda x: np.sum(x) * np.ones(50), machines=1).plan(np.ones(40))
    >>> plan.chain.sizes, plan.makespan, plan.baselines
    ((40, 1, 50), 2040, {'tangent': 3600, 'adjoint': 4500})
    """

    name: str
    structure: Structure
    graph: TapeGraph
    separators: tuple[Separator, ...]
    chunks: tuple[Chunk, ...]
    solution: Solution
    tasks: tuple[PlanTask, ...]
    sweeps: tuple[Sweep | None, ...]
    machines: int
    shapes: tuple[tuple[int, ...], ...]
    cut_reason: CutReason
    machines_reason: MachinesReason
    least_makespan: int | None
    dtypes: tuple[np.dtype, ...]
    uses_blas: bool
    step_threads: int
    lines: tuple[str, ...] = ()
    memory_limit: int | None = None
    last_run: LastRun = field(default_factory=LastRun)

    @property
    def uses_threads(self) -> bool:
        """Whether threads take part besides the calling one."""
        return self.machines > 1 or self.step_threads > 1

    @property
    def chain(self) -> JacobianChain:
        """The Jacobian chain, costs in fma."""
        return self.solution.chain

    @property
    def makespan(self) -> int:
        """Planned time until the last machine is done, in fma that are carried out, see `carried_out`."""
        return self.carried_out[1].makespan

    @property
    def seconds(self) -> float:
        """Predicted time of the sweeps: when the last task finishes. Recording the function comes before.

        Not to be mistaken for ``solution.seconds``, the time that planning the chain took.
        """
        return seconds_of(self.tasks)

    @property
    def fma(self) -> int:
        """Planned work of all machines together, in fma that are carried out."""
        return sum(task.fma for task in self.tasks)

    @property
    def carried_out(self) -> tuple[EliminationSequence, Schedule]:
        """Steps and schedule of the solution, but with the multiply-adds that are carried out.

        Where directions share seeds these are fewer: the chain does not know that links are sparse, and
        counts one seed per direction.
        """
        sequence, schedule = self.solution.sequence, self.solution.schedule
        costs = list(sequence.costs)
        for task in self.tasks:
            for step in task.steps if task.seeds else ():
                costs[step] = costs[step] * task.seeds // task.directions
        if costs == list(sequence.costs):
            return sequence, schedule
        shared = EliminationSequence(sequence.operations, tuple(costs))
        return shared, retimed(schedule, shared)

    @property
    def baselines(self) -> dict[str, int]:
        """Cost of one tangent and of one adjoint sweep with all directions, in fma.

        A link that only moves data counts one edge, as in its chain. Edges that two links sweep count once.
        """
        n, m = self.chain.sizes[0], self.chain.sizes[-1]
        twice = sum(chunk.edges for chunk in self.chunks) - self.graph.total_edges
        return {
            "tangent": self.chain.all_tangent_cost() - n * twice,
            "adjoint": self.chain.all_adjoint_cost() - m * twice,
        }

    @property
    def asked_mode(self) -> Mode | None:
        """The mode of all links where ``method="tangent"`` or ``"adjoint"`` was asked for, else None."""
        links = self.chain.links
        if all(link.tangent and link.adjoint for link in links):
            return None
        return Mode.TANGENT if links[0].tangent else Mode.ADJOINT

    @property
    def peak_bytes(self) -> int:
        """Most memory that an execution takes beyond the tape, in bytes.

        This counts the Jacobians of parts of the chain, each from its task to the task that uses it, and for
        the running sweep the derivatives of all values that are alive. Several machines add up. The memory
        for comparing the tape with the plan, which comes first, is included if it is larger.
        """
        peaks = dict.fromkeys(range(self.machines), 0)
        waiting: dict[int, int] = {}
        held = 0
        for index, (task, sweep) in enumerate(zip(self.tasks, self.sweeps, strict=True)):
            result = 8 * self.chunks[task.first].n * self.chunks[task.last].m
            working = 0 if sweep is None else sweep.working_bytes(task.directions)
            if isinstance(sweep, ScalarSweep) and task.shareable:
                working = sweep.working_bytes(task.directions, self.step_threads)
            if sweep is not None and self.memory_limit is not None:
                working = min(working, max(self.memory_limit, sweep.least_bytes) + result)
            peaks[task.machine] = max(peaks[task.machine], held + max(working, result))
            held += result - sum(waiting.pop(need) for need in task.needs)
            waiting[index] = result
        return max(sum(peaks.values()), _COMPARING_BYTES * len(self.structure.parents))

    def describe(self, level: Literal["line", "normal", "full"] = "normal") -> str:
        """Describe the plan in words and tables.

        Parameters
        ----------
        level
            "line" for one line; "normal" for the chain, the steps and the totals; "full" adds the schedule
            as a picture, after a run its predicted and measured times, the reasons for the plan's choices,
            and what would make the Jacobian cheaper.

        Returns
        -------
        str
            Lines of at most 100 characters.

        Raises
        ------
        ArgumentValueError
            If there is no such level.

        Examples
        --------
        >>> import autograd.numpy as np
        >>> from tapesplit import parallel_jacobian
        >>> parallel_jacobian(np.sin, machines=1).plan(np.ones(3)).describe("line")
        'sin: (3,) -> (3,), one link, 9 fma on one machine, a plain tangent sweep'
        """
        return _views().describe(self, level)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw the split tape into a file.

        Parameters
        ----------
        path
            The extension sets the format: .svg and .dot need no other package, .png and .pdf matplotlib.

        Raises
        ------
        ArgumentValueError, MissingPackageError, UnwritableFileError
            If the extension is none of these, if matplotlib is missing, or if the file cannot be written.

        Notes
        -----
        Large tapes are folded, so a tape of 1e5 entries takes about a second and 100 kB.
        """
        _views().draw_split(self, path)

    def to_html(self, path: str | os.PathLike[str], records: Sequence[TaskRecord] | None = None) -> None:
        """Write an HTML report.

        Parameters
        ----------
        path
            Name of the file, which ends in .html or .htm.
        records
            Measured times of the tasks, as ``finish`` of a `Callback` gets them; by default those of the last
            run that used this plan.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If the name ends otherwise, or if the records are not those of tasks of this plan.
        UnwritableFileError
            If the file cannot be written.

        Notes
        -----
        The file needs no network, follows the light or dark preference of its reader, and stays below 1 MB
        however large the tape is, since pictures of large tapes are folded.
        """
        _views().write_report(self, path, records)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name: fields, and primitives and their rules, see `tapesplit.names`."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return _restored, (jcdp_core.__version__, dumps(state))

    def __str__(self) -> str:
        return self.describe("normal")

    def __repr__(self) -> str:
        return f"<JacobianPlan of {self.describe('line')}>"

    def _repr_html_(self) -> str:
        """Show the plan in a notebook."""
        return _views().notebook_html(self)


_COMPARING_BYTES: Final = 20
"""Bytes for each tape entry that comparing the structure of a tape with that of a plan takes."""


def _views() -> Any:
    """Import the views, which stand above plans, when one is asked for."""
    from tapesplit import draw as views  # noqa: PLC0415 - views read plans, so plans cannot import them at the top

    return views


def _restored(made_by: str, data: bytes) -> JacobianPlan:
    """Restore a plan from what `JacobianPlan.__reduce__` has pickled."""
    here = jcdp_core.__version__
    if made_by != here:
        raise PlanMismatchError(
            f"this plan was pickled by tapesplit {made_by}, but here is tapesplit {here}, whose plans may "
            "have another form; make it anew with parallel_jacobian(...).plan(...)"
        )
    return JacobianPlan(**pickle.loads(data))  # noqa: S301 (part of a pickle that is being loaded already)
