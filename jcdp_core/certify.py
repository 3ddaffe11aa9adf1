"""Certificates: prove that a sequence and a schedule are valid, sharing no code with whatever made them."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from jcdp_core.arguments import expect, is_integer, positive_integer, positive_or_none
from jcdp_core.chain import JacobianChain
from jcdp_core.errors import InvalidScheduleError, InvalidSequenceError
from jcdp_core.operation import Action, Mode, Operation
from jcdp_core.schedule import Schedule, Task
from jcdp_core.sequence import EliminationSequence

__all__ = ["check_schedule", "check_sequence"]


def check_sequence(
    chain: JacobianChain,
    sequence: EliminationSequence,
    *,
    matrix_free: bool = True,
    memory_limit: int | None = None,
    pool_sizes: Sequence[int] | None = None,
) -> None:
    """Prove that a sequence computes the chain's Jacobian within its constraints, at the stated costs.

    Parameters
    ----------
    chain : JacobianChain
        The chain.
    sequence : EliminationSequence
        The steps and their costs.
    matrix_free : bool, optional
        Whether tangent and adjoint eliminations are allowed.
    memory_limit : int, optional
        Edges that a machine can tape; an adjoint step must fit the links that it sweeps.
    pool_sizes : sequence of int, optional
        Machines whose memory each step may use (shared memory); by default one.

    Raises
    ------
    InvalidSequenceError
        If a step uses a Jacobian that is not there, makes one that nobody uses, has the wrong cost (or one
        that is no integer), or breaks a constraint. The message names the step.
    SolverError
        If the memory limit is not positive.
    ArgumentTypeError
        If an argument has the wrong type; the message names it.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Operation
    >>> chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    >>> steps = map(Operation.parse, ["ACC TAN (0 1)", "ELI MUL (0 1 2)"])
    >>> check_sequence(chain, EliminationSequence.from_operations(chain, steps))
    Traceback (most recent call last):
        ...
    jcdp_core.errors.InvalidSequenceError: step 2, ELI MUL (0 1 2), needs the Jacobian (1 2), ...
    """
    expect(chain, JacobianChain, "chain", "give the chain first, then the sequence")
    expect(sequence, EliminationSequence, "sequence", "give that of a solution")
    expect(matrix_free, (bool, np.bool_), "matrix_free", "give True or False")
    memory_limit = positive_or_none(memory_limit, "memory_limit")
    pools = _pool_sizes(pool_sizes, len(sequence.operations))
    available: dict[tuple[int, int], str] = {}
    for index, (operation, cost) in enumerate(zip(sequence.operations, sequence.costs, strict=True)):
        name = f"step {index + 1}, {operation},"
        if operation.j > len(chain.links):
            raise InvalidSequenceError(f"{name} reaches beyond the chain's last position {len(chain.links)}")
        for operand in _needs(operation):
            if available.pop(operand, None) is None:
                raise InvalidSequenceError(
                    f"{name} needs the Jacobian ({_join(operand)}), which is not there"
                )
        if (operation.i, operation.j) in available:
            raise InvalidSequenceError(
                f"{name} makes a Jacobian that {available[operation.i, operation.j]} made"
            )
        available[operation.i, operation.j] = name.rstrip(",")
        if cost != _fma(chain, operation):
            raise InvalidSequenceError(f"{name} costs {_fma(chain, operation)} fma, not {cost}")
        edge_limit = None if memory_limit is None else memory_limit * pools[index]
        _check_modes(chain, operation, name, matrix_free, edge_limit)
    whole = (0, len(chain.links))
    if available.pop(whole, None) is None:
        raise InvalidSequenceError(f"no step makes the Jacobian ({_join(whole)}) of the whole chain")
    if available:
        operand, maker = next(iter(available.items()))
        raise InvalidSequenceError(f"the Jacobian ({_join(operand)}), made by {maker}, is never used")


def _pool_sizes(pool_sizes: Sequence[int] | None, steps: int) -> list[int]:
    """Return the number of machines whose memory each step may use."""
    if pool_sizes is None:
        return [1] * steps
    expect(pool_sizes, (Sequence, np.ndarray), "pool_sizes", "give a list")
    if len(pool_sizes) != steps:
        raise InvalidSequenceError(f"{len(pool_sizes)} pool sizes for {steps} steps; give one each")
    pools = [positive_integer(size) for size in pool_sizes]
    if 0 in pools:
        number = pools.index(0)
        raise InvalidSequenceError(
            f"the pool size of step {number + 1} is {pool_sizes[number]!r}; give an int ≥ 1"
        )
    return pools


def check_schedule(sequence: EliminationSequence, schedule: Schedule, machines: int | None = None) -> None:
    """Prove that a schedule runs each step once, after those that it needs, on a machine that is free.

    Machine pools are proved, too: a task runs on a machine of its pool, and the pools of tasks that overlap
    in time share no machine.

    Parameters
    ----------
    sequence : EliminationSequence
        A sequence that `check_sequence` accepts.
    schedule : Schedule
        Its schedule.
    machines : int, optional
        Machines that exist; by default those that the schedule states.

    Raises
    ------
    InvalidScheduleError
        The message names the task, the pair of tasks, or the precedence edge, all counted from 1. Times and
        machines that are no integers are refused, too, and empty pools.
    SolverError
        If the number of machines is not positive.
    ArgumentTypeError
        If an argument has the wrong type.

    Notes
    -----
    O(p²) for p tasks: it compares every pair.

    References
    ----------
    Märtens & Naumann 2025, Sec. 3.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Operation, Task
    >>> chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    >>> steps = map(Operation.parse, ["ACC TAN (0 1)", "ELI TAN (0 1 2)"])
    >>> sequence = EliminationSequence.from_operations(chain, steps)
    >>> schedule = Schedule((Task(0, 0, 0, 21, (0,)), Task(1, 1, 20, 53, (1,))), machines=2)
    >>> check_schedule(sequence, schedule)
    Traceback (most recent call last):
        ...
    jcdp_core.errors.InvalidScheduleError: step 2 starts at 20, before step 1, which it needs, finishes at 21
    """
    expect(sequence, EliminationSequence, "sequence", "give that of a solution")
    expect(schedule, Schedule, "schedule", "give the sequence first, then the schedule")
    machines = positive_or_none(machines, "machines") or schedule.machines
    if len(schedule.tasks) != len(sequence.operations):
        raise InvalidScheduleError(
            f"{len(schedule.tasks)} tasks for {len(sequence.operations)} steps; give one each"
        )
    for number, (task, cost) in enumerate(zip(schedule.tasks, sequence.costs, strict=True), start=1):
        _check_kinds(task, number)
        if task.start < 0 or task.finish - task.start != cost:
            raise InvalidScheduleError(
                f"step {number} runs from {task.start} to {task.finish} but costs {cost} fma"
            )
        if task.machine not in task.pool:
            raise InvalidScheduleError(
                f"step {number} runs on machine {task.machine + 1}, not in its pool {task.pool_text()}"
            )
        if len(set(task.pool)) < len(task.pool):
            raise InvalidScheduleError(
                f"step {number} has a machine twice in its pool {task.pool_text()}; name each once"
            )
        if any(not 0 <= machine < machines for machine in task.pool):
            raise InvalidScheduleError(
                f"step {number} has the pool {task.pool_text()}, but there {_machines(machines)}"
            )
    _check_precedence(sequence, schedule)
    for first, second in combinations(schedule.tasks, 2):
        overlap = max(first.start, second.start) < min(first.finish, second.finish)
        if overlap and not set(first.pool).isdisjoint(second.pool):
            shared = 1 + min(set(first.pool) & set(second.pool))
            raise InvalidScheduleError(
                f"steps {first.index + 1} and {second.index + 1} overlap in time and share machine {shared}"
            )


def _check_kinds(task: Task, number: int) -> None:
    """Prove that times and machines are integers, and that the pool has at least one machine."""
    if not isinstance(task.pool, Sequence) or not task.pool:
        raise InvalidScheduleError(
            f"the pool of step {number} is {task.pool!r}; give at least the machine that runs the step"
        )
    for value in (task.start, task.finish, task.machine, *task.pool):
        if not is_integer(value):
            raise InvalidScheduleError(f"step {number} has {value!r} among its times and machines; give ints")


def _check_precedence(sequence: EliminationSequence, schedule: Schedule) -> None:
    """Prove that each task starts after those whose results it needs have finished."""
    made: dict[tuple[int, int], int] = {}
    for index, operation in enumerate(sequence.operations):
        for operand in _needs(operation):
            if operand not in made:
                raise InvalidScheduleError(
                    f"step {index + 1} needs ({_join(operand)}), which no earlier step makes"
                )
            before, after = schedule.tasks[made[operand]], schedule.tasks[index]
            if after.start < before.finish:
                raise InvalidScheduleError(
                    f"step {index + 1} starts at {after.start}, before step {before.index + 1}, which it "
                    f"needs, finishes at {before.finish}"
                )
        made[operation.i, operation.j] = index


def _needs(operation: Operation) -> list[tuple[int, int]]:
    """Return the Jacobians that a step consumes."""
    i, k, j = operation.i, operation.k, operation.j
    if k is None:
        return []
    if operation.mode is Mode.TANGENT:
        return [(i, k)]
    if operation.mode is Mode.ADJOINT:
        return [(k, j)]
    return [(i, k), (k, j)]


def _models(operation: Operation) -> tuple[int, int]:
    """Return the positions between which a step runs tangent or adjoint models."""
    i, k, j = operation.i, operation.k, operation.j
    if k is None:
        return i, j
    return {Mode.TANGENT: (k, j), Mode.ADJOINT: (i, k), Mode.MULTIPLY: (k, k)}[operation.mode]


def _fma(chain: JacobianChain, operation: Operation) -> int:
    """Count the fused multiply-adds of a step from the chain's numbers."""
    inputs, outputs = chain.links[operation.i].n, chain.links[operation.j - 1].m
    if operation.mode is Mode.MULTIPLY and operation.k is not None:
        return inputs * chain.links[operation.k].n * outputs
    first, last = _models(operation)
    if operation.mode is Mode.TANGENT:
        return sum(inputs * link.tangent_cost for link in chain.links[first:last])
    return sum(outputs * link.adjoint_cost for link in chain.links[first:last])


def _check_modes(
    chain: JacobianChain, operation: Operation, name: str, matrix_free: bool, edge_limit: int | None
) -> None:
    """Prove that the modes that a step uses are available and that its tape fits."""
    if operation.mode is Mode.MULTIPLY:
        return
    if operation.action is Action.ELIMINATE and not matrix_free:
        raise InvalidSequenceError(f"{name} is matrix-free, but only accumulations and products are allowed")
    first, last = _models(operation)
    for number, link in enumerate(chain.links[first:last], start=first + 1):
        if not (link.tangent if operation.mode is Mode.TANGENT else link.adjoint):
            raise InvalidSequenceError(f"{name} runs link {number} in a mode that is not available for it")
    edges = sum(link.edges for link in chain.links[first:last])
    if operation.mode is Mode.ADJOINT and edge_limit is not None and edges > edge_limit:
        raise InvalidSequenceError(f"{name} tapes {edges} edges, more than the memory limit of {edge_limit}")


def _machines(number: int) -> str:
    """Say how many machines there are."""
    return "is 1 machine" if number == 1 else f"are {number} machines"


def _join(positions: tuple[int, int]) -> str:
    """Write positions as the paper does."""
    return " ".join(map(str, positions))
