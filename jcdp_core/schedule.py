"""A schedule: when and where each step of an elimination sequence runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from jcdp_core.arguments import expect, is_integer, plain, positive_integer
from jcdp_core.errors import InvalidScheduleError
from jcdp_core.sequence import EliminationSequence
from jcdp_core.tables import Tabular

__all__ = ["Schedule", "Task", "check_same_steps", "machine_labels"]

_HEAD: Final = ("step", "machine", "start", "finish")


@dataclass(frozen=True, slots=True)
class Task:
    """Place one step on a machine.

    Parameters
    ----------
    index : int
        The step's index in the sequence (0-based).
    machine : int
        The machine that runs it (0-based).
    start, finish : int
        Times (fma).
    pool : tuple of int
        Machines that were free for the step (0-based); `(machine,)` where a solver has no pools.

    Examples
    --------
    >>> Task(0, machine=1, start=0, finish=21, pool=(1, 2)).pool
    (1, 2)
    """

    index: int
    machine: int
    start: int
    finish: int
    pool: tuple[int, ...]

    def __post_init__(self) -> None:
        """Turn numbers of NumPy into Python's; solvers give the latter."""
        numbers = (self.index, self.machine, self.start, self.finish)
        if type(self.pool) is not tuple or not all(type(number) is int for number in numbers + self.pool):
            for name in ("index", "machine", "start", "finish", "pool"):
                object.__setattr__(self, name, plain(getattr(self, name)))

    def pool_text(self) -> str:
        """Write the pool with machines counted from 1: as the paper does, or as a set if it has gaps.

        Returns
        -------
        str
            `[2]` for one machine, `[1,3]` for the machines 1 to 3, `{1,3}` for those two alone,
            `{}` for none.

        Examples
        --------
        >>> Task(0, 0, 0, 21, (0, 1, 2)).pool_text(), Task(0, 0, 0, 21, (0, 2)).pool_text()
        ('[1,3]', '{1,3}')
        """
        numbers = [machine + 1 for machine in self.pool]
        if len(numbers) == 1:
            return f"[{numbers[0]}]"
        if numbers and numbers == list(range(numbers[0], numbers[-1] + 1)):
            return f"[{numbers[0]},{numbers[-1]}]"
        return f"{{{','.join(map(str, numbers))}}}"


@dataclass(frozen=True)  # slots would make a TypeError of assigning to a property
class Schedule(Tabular):
    """Hold the tasks of an elimination sequence, in the order of its steps.

    Parameters
    ----------
    tasks : tuple of Task
        Task p runs step p.
    machines : int
        Number of machines.

    Raises
    ------
    InvalidScheduleError
        If there is no task, the tasks are not in the order of the steps, or the number of machines is not a
        positive integer. `check_schedule` checks the rest.
    ArgumentTypeError
        If a task is something else.

    References
    ----------
    Märtens & Naumann 2025, Sec. 3.

    Examples
    --------
    >>> tasks = Task(0, 0, 0, 21, (0,)), Task(1, 1, 0, 30, (1,)), Task(2, 1, 30, 60, (1,))
    >>> schedule = Schedule(tasks, machines=2)
    >>> schedule.makespan, schedule.idle
    (60, 39)
    >>> print(schedule)
    Schedule on 2 machines, makespan 60 fma
    step  machine  start  finish
       1        1      0      21
       2        2      0      30
       3        2     30      60
    """

    tasks: tuple[Task, ...]
    machines: int

    def __post_init__(self) -> None:
        """Freeze the tasks, check their order, and count the machines."""
        expect(self.tasks, Iterable, "tasks", "give a list of Task")
        object.__setattr__(self, "tasks", tuple(self.tasks))
        if not self.tasks:
            raise InvalidScheduleError("the schedule has no tasks; give one per step of the sequence")
        for position, task in enumerate(self.tasks):
            expect(task, Task, f"tasks[{position}]", "give one Task per step")
            if not is_integer(task.index) or task.index != position:
                raise InvalidScheduleError(
                    f"tasks[{position}] has index {task.index!r}; give the tasks in the order of the steps, "
                    "with the indices 0, 1, …"
                )
        machines = positive_integer(self.machines)
        if not machines:
            raise InvalidScheduleError(f"machines is {self.machines!r}; give their number, an int ≥ 1")
        object.__setattr__(self, "machines", machines)

    @property
    def makespan(self) -> int:
        """Time at which the last task finishes (fma)."""
        return max(task.finish for task in self.tasks)

    @property
    def idle(self) -> int:
        """Time that the machines, all together, do nothing until the makespan (fma), reserved or not."""
        return self.machines * self.makespan - sum(task.finish - task.start for task in self.tasks)

    def gantt(self, sequence: EliminationSequence, width: int = 80) -> str:
        """Draw the schedule as text, one line a machine.

        Each task is a bar `[3 ELI ADJ==]` with its number (1-based) and step as far as there is room, or one
        of `|`; dots are idle time, also of machines that a pool reserves for their memory only. Machines
        after the last one that runs a task share a line. A task shorter than one character can be hidden by
        its neighbors: a larger `width` shows it.

        Parameters
        ----------
        sequence : EliminationSequence
            The steps that the tasks run.
        width : int, optional
            Characters for the time axis.

        Returns
        -------
        str
            The drawing.

        Raises
        ------
        InvalidScheduleError
            If the sequence has more or fewer steps than the schedule has tasks, or the width is no positive
            integer.
        ArgumentTypeError
            If the sequence is something else.

        Examples
        --------
        >>> from jcdp_core import JacobianChain, Operation
        >>> chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
        >>> steps = ["ACC TAN (0 1)", "ELI TAN (0 1 2)"]
        >>> sequence = EliminationSequence.from_operations(chain, map(Operation.parse, steps))
        >>> schedule = Schedule((Task(0, 0, 0, 21, (0,)), Task(1, 0, 21, 54, (0,))), machines=1)
        >>> print(schedule.gantt(sequence, width=30))
        1 |[1 ACC TAN][2 ELI TAN========]|
           0                           54
        """
        check_same_steps(sequence, self)
        columns = positive_integer(width)
        if not columns:
            raise InvalidScheduleError(f"width is {width!r}; give a number of characters, an int ≥ 1")
        end, labels = self.makespan, machine_labels(self)
        label_width = max(map(len, labels))
        lines = []
        for machine, label in enumerate(labels):
            row = ["."] * columns
            own = [task for task in self.tasks if task.machine == machine]
            for task in own:
                left, right = task.start * columns // end, task.finish * columns // end
                row[left:right] = _bar(task.index, sequence, right - left)
            for task in own:
                left = min(task.start * columns // end, columns - 1)
                row[left] = "|" if row[left] == "." else row[left]
            lines.append(f"{label:>{label_width}} |{''.join(row)}|")
        return "\n".join([*lines, f"{'':{label_width}}  0 {str(end).rjust(columns - 2)}"])

    def _table(self) -> tuple[str, Sequence[str], Sequence[Sequence[object]]]:
        """Return the table of the tasks; steps and machines are counted from 1."""
        machines = f"{self.machines} machine{'s' * (self.machines != 1)}"
        rows = [(task.index + 1, task.machine + 1, task.start, task.finish) for task in self.tasks]
        return f"Schedule on {machines}, makespan {self.makespan} fma", _HEAD, rows


def check_same_steps(sequence: EliminationSequence, schedule: Schedule) -> None:
    """Raise unless a schedule has as many tasks as a sequence has steps, for those who draw the two.

    Raises `InvalidScheduleError` if the two do not belong together, `ArgumentTypeError` if one of them is
    something else.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> solution = solve(JacobianChain.from_sizes([3, 2, 5], [7, 11]))
    >>> check_same_steps(solution.sequence, solution.schedule)
    """
    expect(sequence, EliminationSequence, "sequence", "give that of the schedule")
    expect(schedule, Schedule, "schedule", "give the sequence first, then the schedule")
    steps, tasks = len(sequence), len(schedule.tasks)
    if steps != tasks:
        raise InvalidScheduleError(
            f"the schedule has {tasks} task{'s' * (tasks != 1)}, but the sequence "
            f"{steps} step{'s' * (steps != 1)}; give the sequence that it schedules"
        )


def machine_labels(schedule: Schedule) -> list[str]:
    """Return the labels of a chart's rows: one per machine, and one for all after the last with a task.

    Machines are counted from 1.

    Examples
    --------
    >>> machine_labels(Schedule((Task(0, 1, 0, 21, (1,)),), machines=5))
    ['1', '2', '3-5']
    """
    used, machines = 1 + max(task.machine for task in schedule.tasks), schedule.machines
    labels = [str(machine + 1) for machine in range(used)]
    if machines > used:
        labels.append(str(machines) if machines == used + 1 else f"{used + 1}-{machines}")
    return labels


def _bar(index: int, sequence: EliminationSequence, length: int) -> str:
    """Return exactly `length` characters that show one task."""
    if length < 2:
        return "|" * length
    number, step = str(index + 1), sequence.operations[index]
    labels = f"{number} {step.action.value} {step.mode.value}", f"{number} {step.mode.value}", number, ""
    label = next(label for label in labels if len(label) <= length - 2)
    return f"[{label:=<{length - 2}}]"
