"""What planning takes next to recording: milliseconds of each stage, for tapes of up to 100 000 operations.

``python -m benchmarks.planning [sizes]``. The chain, that is graph, cuts and dynamic program, should take no
longer than recording, and neither should the whole plan, with the facts and prices that the chain is made of;
sweeps are compiled besides. Garbage is collected before each run, which leaves the caches as cold as a first
call finds them.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import autograd.numpy as anp
import numpy as np

from jcdp_core import solve
from tapesplit import parallel_jacobian
from tapesplit.cost.work import work_table
from tapesplit.cuts.chunks import chunk_chain, cut_into_chunks
from tapesplit.cuts.graph import graph_of
from tapesplit.cuts.separators import cut_graph
from tapesplit.planning.effort import effort_for
from tapesplit.recording.tape import Tape
from tapesplit.structures.facts import facts_of
from tapesplit.structures.structure import Structure, structure_of

Function = Callable[[Any], Any]


def ring(size: int) -> tuple[Function, np.ndarray]:
    """Relax 20 coupled numbers one after the other."""

    def function(x):
        cells = [x[i] for i in range(20)]
        for step in range(size // 3):
            i = step % 20
            cells[i] = anp.sin(cells[i]) * 0.9 + cells[(i + 1) % 20]
        return anp.array(cells)

    return function, np.ones(20)


def bottleneck(size: int) -> tuple[Function, np.ndarray]:
    """Spread three numbers over many and gather them again, four times."""

    def function(x):
        y = [anp.sum(anp.sin(k * x)) for k in range(3)]
        for _ in range(4):
            z = [anp.sin(y[0] * k) + y[1] * y[2] for k in range(size // 32)]
            y = [anp.tanh(sum(a * b for a, b in zip(z[k::3], z[k + 1 :: 3], strict=False))) for k in range(3)]
        return anp.array([anp.sin(y[0] * k) + y[1] * y[2] for k in range(50)])

    return function, np.ones(50)


def layers(size: int) -> tuple[Function, np.ndarray]:
    """Pass 20 numbers through narrow layers."""
    weights = np.random.default_rng(0).standard_normal((20, 20)) / 5

    def function(x):
        for _ in range(size // 3):
            x = anp.tanh(weights @ x) + 0.1 * x
        return x

    return function, np.ones(20)


def strands(size: int) -> tuple[Function, np.ndarray]:
    """Pass five vectors through layers side by side, to one number each, and spread these."""
    weights = np.random.default_rng(0).standard_normal((10, 10)) / 3

    def function(x):
        vectors = [x[10 * i : 10 * i + 10] for i in range(5)]
        for _ in range(size // 10):
            vectors = [anp.tanh(weights @ vector) for vector in vectors]
        return anp.concatenate([anp.sin(anp.sum(vector) * weights[0]) for vector in vectors])

    return function, np.ones(50)


def random_products(size: int) -> tuple[Function, np.ndarray]:
    """Multiply numbers with others of the last sixty."""
    pairs = np.random.default_rng(1).integers(0, 60, (size // 2, 2)).tolist()

    def function(x):
        values = [x[i] for i in range(20)]
        for a, b in pairs:
            values.append(anp.sin(values[-1 - a % len(values)]) * values[-1 - b % len(values)])
        return anp.array(values[-30:])

    return function, np.full(20, 0.3)


def coupled_vectors(size: int) -> tuple[Function, np.ndarray]:
    """Couple twenty vectors of different lengths in a ring."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(5, 40, 20)
    ends = [slice(stop - length, stop) for stop, length in zip(np.cumsum(lengths), lengths, strict=True)]
    weights = [rng.standard_normal((n, m)) / 50 for n, m in zip(lengths, np.roll(lengths, -1), strict=True)]

    def function(x):
        vectors = [x[part] for part in ends]
        for _ in range(size // 80):
            following = [*vectors[1:], vectors[0]]
            vectors = [anp.tanh(v + w @ u) for v, w, u in zip(vectors, weights, following, strict=True)]
        return anp.concatenate(vectors)

    return function, np.ones(lengths.sum())


PROGRAMS = {
    "ring of 20 numbers": ring,
    "through three numbers": bottleneck,
    "narrow layers": layers,
    "five strands": strands,
    "random products": random_products,
    "coupled vectors": coupled_vectors,
}


def shortest(repeat: int, task: Callable[..., object], *args: Any) -> float:
    """Return the shortest time of several runs in seconds."""
    times = []
    for _ in range(repeat):
        gc.collect()
        start = time.perf_counter()
        task(*args)
        times.append(time.perf_counter() - start)
    return min(times)


STAGES = ("facts", "graph", "price", "cut", "solve")
OF_CHAIN = ("graph", "cut", "solve")


def planning(tape: Tape, structure: Structure) -> Iterator[None]:
    """Do all that planning does; yield before the first stage and behind each."""
    yield
    facts = facts_of(tape, structure)
    yield
    graph = graph_of(tape, facts)
    yield
    table = work_table(facts)
    effort = effort_for(graph, table)
    yield
    separators = () if effort == "none" else cut_graph(graph, thorough=effort == "thorough")
    yield
    solve(chunk_chain(cut_into_chunks(graph, separators), facts, table.spared_edges))
    yield


def stage_seconds(tape: Tape, structure: Structure) -> np.ndarray:
    """Return the seconds that each stage of planning takes, with all stages in one go."""
    gc.collect()
    return np.diff([time.perf_counter() for _ in planning(tape, structure)])


def rows(sizes: list[int]) -> Iterator[tuple[str, int]]:
    """Measure each program at each size, the stages in the fastest of some runs of planning.

    Yields a row, and how many of both took longer than recording.
    """
    for name, build in PROGRAMS.items():
        for size in sizes:
            function, x = build(size)
            jac, repeat = parallel_jacobian(function, machines=1), 5 if size < 50_000 else 2
            later, recorded = shortest(repeat, jac, x), shortest(repeat, jac.tape, x)
            tape, links = jac.tape(x), len(jac.plan(x).chain)
            structure = structure_of(tape)
            stages = min((stage_seconds(tape, structure) for _ in range(repeat)), key=sum)
            chain = sum(seconds for stage, seconds in zip(STAGES, stages, strict=True) if stage in OF_CHAIN)
            ratios = chain / recorded, stages.sum() / recorded
            row = (
                f"{name:22}{len(tape):>8}{links:>6}"
                + "".join(f"{1e3 * seconds:>9.2f}" for seconds in (recorded, *stages, later))
                + "".join(f"{ratio:>7.2f} {'holds' if ratio <= 1 else 'MISSED':>6}" for ratio in ratios)
            )
            yield row, sum(ratio > 1 for ratio in ratios)


def main() -> int:
    """Print the table, for sizes given as arguments or these; 1 if planning takes longer than recording."""
    head = f"{'ms':22}{'tape':>8}{'links':>6}" + "".join(f"{c:>9}" for c in ("record", *STAGES, "later"))
    print(f"{head}{'chain/record':>14}{'plan/record':>14}   bars of 1")
    missed = 0
    for row, is_missed in rows([int(float(size)) for size in sys.argv[1:]] or [1_000, 10_000, 100_000]):
        print(row, flush=True)
        missed += is_missed
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
