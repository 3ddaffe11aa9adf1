"""All trees, all schedules, on plain integers: what the exact solver is measured against.

Nothing here comes from jcdp_core, and nothing is shared with its solvers: eliminations of any length are
tried as single steps, the tape of a long one is the sum of its links, and every order of the steps is placed.
"""

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Instance:
    """A chain with its settings; `sizes` has one entry more than the others."""

    sizes: tuple[int, ...]
    edges: tuple[int, ...]
    tangent_costs: tuple[int, ...]
    adjoint_costs: tuple[int, ...]
    tangent: tuple[bool, ...]
    adjoint: tuple[bool, ...]
    machines: int
    matrix_free: bool = True
    memory_limit: int | None = None
    shared_memory: bool = False


def best_makespan(instance):
    """Return the least makespan over all trees and schedules, or None if there is none."""
    best = None
    for tasks in set(_trees(instance)(0, len(instance.edges))):
        best = _best_order(tasks, instance.machines, best)
    return best


def _trees(instance):
    """Return a function that lists, for positions i < j, all trees as tuples of (cost, machines, operands).

    Operands are indices into the tuple; the last task is the root.
    """

    def adjoint_machines(first, last):
        tape = sum(instance.edges[first:last])
        if not all(instance.adjoint[first:last]):
            return 0
        if instance.memory_limit is None or tape <= instance.memory_limit:
            return 1
        pool = (tape + instance.memory_limit - 1) // instance.memory_limit
        return pool if instance.shared_memory and pool <= instance.machines else 0

    def extend(tree, cost, machines):
        return (*tree, (cost, machines, (len(tree) - 1,) if tree else ()))

    @cache
    def trees(i, j):
        found = []
        n, m = instance.sizes[i], instance.sizes[j]
        for k in range(i, j):
            earlier = trees(i, k) if k > i else [()]
            if all(instance.tangent[k:j]) and (instance.matrix_free or k + 1 == j == i + 1):
                cost = n * sum(instance.tangent_costs[k:j])
                found += [extend(tree, cost, 1) for tree in earlier if tree or j == i + 1]
        for k in range(i + 1, j + 1):
            later = trees(k, j) if k < j else [()]
            pool = adjoint_machines(i, k)
            if pool and (instance.matrix_free or k == j == i + 1):
                cost = m * sum(instance.adjoint_costs[i:k])
                found += [extend(tree, cost, pool) for tree in later if tree or j == i + 1]
        for k in range(i + 1, j):
            cost = n * instance.sizes[k] * m
            for first in trees(i, k):
                for second in trees(k, j):
                    shifted = [(c, p, tuple(x + len(first) for x in needs)) for c, p, needs in second]
                    both = (*first, *shifted)
                    found.append((*both, (cost, 1, (len(first) - 1, len(both) - 1))))
        return found

    return trees


def _best_order(tasks, machines, best):
    """Place the tasks in all orders, each as early as its operands and enough machines allow.

    An optimal schedule in which no task can start earlier is met in the order of its start times, so orders
    whose start times go back are left out. So are those in which what waits for a task ends too late.
    """
    finish = [0] * len(tasks)
    tails = [cost for cost, _, _ in tasks]
    for index, (_, _, needs) in reversed(list(enumerate(tasks))):  # each is needed by one later task
        for need in needs:
            tails[need] += tails[index]

    def place(begun, free, before, latest):
        nonlocal best
        if begun == (1 << len(tasks)) - 1:
            best = latest
            return
        for index, (cost, pool, needs) in enumerate(tasks):
            if begun >> index & 1 or any(not begun >> need & 1 for need in needs):
                continue
            start = max([free[pool - 1], *(finish[need] for need in needs)])
            if start < before or (best is not None and start + tails[index] >= best):
                continue
            finish[index] = start + cost
            # The `pool` machines that become idle last, but not after the start, are taken.
            idle = sum(since <= start for since in free)
            machines_after = sorted([*free[: idle - pool], *[start + cost] * pool, *free[idle:]])
            place(begun | 1 << index, machines_after, start, max(latest, start + cost))

    place(0, [0] * machines, 0, 0)
    return best


def random_instance(rng, longest, *, ties):
    """Draw an instance with any of the settings; with ties all numbers are small."""
    q = rng.randint(1, longest)
    largest_size, largest_cost = (rng.choice([2, 3, 5]), rng.choice([3, 6, 20])) if ties else (50, 1000)
    numbers = [tuple(rng.randint(1, largest_cost) for _ in range(q)) for _ in range(3)]
    edges, tangent_costs, adjoint_costs = numbers if rng.random() < 0.5 else numbers[:1] * 3
    modes = [(True, True)] * q
    if rng.random() < 0.3:
        modes = [rng.choice([(True, True), (True, False), (False, True)]) for _ in range(q)]
    memory_limit = rng.randint(1, max(edges) + 2) if rng.random() < 0.4 else None
    shared = memory_limit is not None and rng.random() < 0.5
    machines = rng.randint(1, q + 1)
    if shared and rng.random() < 0.5:  # more machines than links are of use for their memory
        machines = rng.randint(1, max(2, min(12, sum(edges) // memory_limit + q)))
    return Instance(
        sizes=tuple(rng.randint(1, largest_size) for _ in range(q + 1)),
        edges=edges,
        tangent_costs=tangent_costs,
        adjoint_costs=adjoint_costs,
        tangent=tuple(tangent for tangent, _ in modes),
        adjoint=tuple(adjoint for _, adjoint in modes),
        machines=machines,
        matrix_free=rng.random() < 0.75,
        memory_limit=memory_limit,
        shared_memory=shared,
    )
