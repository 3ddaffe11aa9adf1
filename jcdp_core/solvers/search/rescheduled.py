"""The dynamic program as the other solvers fall back on it: rescheduled, and never refused for its size."""

from dataclasses import replace

from jcdp_core.schedule import Schedule
from jcdp_core.schedulers import schedule_sequence
from jcdp_core.solvers.dp_table import TableSizeError
from jcdp_core.solvers.dynamic_programming import solve_dynamic_programming
from jcdp_core.solvers.problem import Problem
from jcdp_core.solvers.solution import Solution

__all__ = ["on_enough_machines", "rescheduled_program"]


def rescheduled_program(problem: Problem) -> Solution:
    """Return the solution of the dynamic program, its steps rescheduled where that makes it shorter.

    The problem must be feasible; its time limit does not count. Where the table would be too large, the
    solution has the steps of least work, which one machine at a time runs, with a bound of their work per
    machine.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> rescheduled_program(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=2)).makespan
    47
    """
    try:
        program = on_enough_machines(problem) or solve_dynamic_programming(problem)
    except TableSizeError:
        program = _least_work(problem)
    if program.optimal or problem.pools_matter:
        return program  # with shared memory, steps need their pools
    schedule = schedule_sequence(
        program.sequence, machines=problem.machines, method="highest_level_first"
    ).schedule
    return replace(program, schedule=schedule) if schedule.makespan < program.makespan else program


def on_enough_machines(problem: Problem) -> Solution | None:
    """Return the solution for unlimited machines if there are as many as it uses: nothing is shorter.

    The problem must be feasible. None if the solution uses more machines, on one machine, and where machines
    share memory.

    Notes
    -----
    Its table has a single row, instead of one for each machine.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> on_enough_machines(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=2)).optimal
    True
    """
    machines = problem.machines or 1  # where they are unlimited, it is one table anyway
    if machines == 1 or problem.pools_matter:
        return None
    program = solve_dynamic_programming(replace(problem, machines=None, shared_memory=False))
    if program.schedule.machines > machines:
        return None
    return replace(program, schedule=Schedule(program.schedule.tasks, machines), machines=machines)


def _least_work(problem: Problem) -> Solution:
    """Run the steps of least work one after the other, each with all memory that machines share."""
    memory_limit = problem.edge_limit(problem.machines or 1)
    program = solve_dynamic_programming(
        replace(problem, machines=1, memory_limit=memory_limit, shared_memory=False)
    )
    useful = problem.useful_machines
    pool = tuple(range(useful if problem.shared_memory else 1))
    tasks = tuple(replace(task, pool=pool) for task in program.schedule.tasks)
    return replace(
        program,
        schedule=Schedule(tasks, problem.machines or useful),
        lower_bound=-(-program.makespan // useful),
        machines=problem.machines,
    )
