"""Separators on random tapes of 1e3 to 1e5 values: time of each stage, memory, and widths.

Run as ``python -m benchmarks.separators_scaling``, or as a script. For every family of graphs the table shows

- the size before and after coarsening,
- milliseconds for coarsening, for the search of separators (coarsening included), for assigning chunks and
  for planning the chain on one machine,
- peak memory of the search in bytes per value,
- the width of the input, of the narrowest live set in tape order, and of the narrowest separator,
- planned fma as a part of the better plain mode.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np

from jcdp_core import JacobianChain, solve
from tapesplit.cuts.chunks import cut_into_chunks
from tapesplit.cuts.coarsen import coarsen
from tapesplit.cuts.graph import TapeGraph, frontier_widths, tape_ranks
from tapesplit.cuts.separators import cut_graph

Arcs = tuple[np.ndarray, np.ndarray]


def build(widths: np.ndarray, child: np.ndarray, parent: np.ndarray) -> TapeGraph:
    """Join loose starts to the input (vertex 0) and loose ends to the output (the last vertex)."""
    size = len(widths)
    computed, read = np.zeros((2, size), dtype=bool)
    computed[child], read[parent] = True, True
    starts, ends = np.flatnonzero(~computed[1:]) + 1, np.flatnonzero(~read[:-1])
    starts, ends = starts[starts < size - 1], ends[ends > 0]
    child = np.concatenate([child, starts, np.full(len(ends), size - 1)])
    parent = np.concatenate([parent, np.zeros(len(starts), dtype=int), ends])
    edges = np.bincount(child, weights=np.minimum(widths[child], widths[parent]), minlength=size)
    return TapeGraph(np.arange(size), widths, edges.astype(np.int64), child, parent, 1, size - 1)


def ends_of(width: int, inner: np.ndarray) -> np.ndarray:
    """Put an input and an output of one width around the inner values."""
    return np.concatenate([[width], inner, [width]]).astype(np.int64)


def layered(rng: np.random.Generator, size: int, layer: int, most: int) -> TapeGraph:
    """Layers whose values read two random values of the layer before, and leave none unread."""
    count = max(size // layer, 2)
    values = 1 + np.arange(count * layer).reshape(count, layer)
    sources = [rng.permuted(values[:-1], axis=1), rng.choice(values[:-1], layer, axis=1)]
    child = np.concatenate([values[1:].ravel()] * 2)
    parent = np.concatenate([source.ravel() for source in sources])
    return build(ends_of(layer * most, rng.integers(1, most + 1, count * layer)), child, parent)


def ladder(rng: np.random.Generator, size: int) -> TapeGraph:
    """Two rails with rungs from one to the other."""
    rungs = size // 2
    left = 1 + 2 * np.arange(rungs)
    child = np.concatenate([left[1:], left[1:] + 1, left + 1])
    parent = np.concatenate([left[:-1], left[:-1] + 1, left])
    return build(ends_of(200, rng.integers(1, 50, 2 * rungs)), child, parent)


def tree(rng: np.random.Generator, size: int) -> TapeGraph:
    """Values that are added in pairs until one is left, which then branches out again."""
    leaves = size // 3
    inner = np.arange(leaves - 1)
    sums = 1 + leaves + inner
    branches = sums[-1] + 1 + np.arange(size - 2 * leaves - 1)
    child = np.concatenate([sums, sums, branches])
    parent = np.concatenate([1 + 2 * inner, 2 + 2 * inner, sums[-1] + (np.arange(len(branches)) // 2)])
    return build(ends_of(leaves, rng.integers(1, 3, branches[-1])), child, parent)


def interleaved(rng: np.random.Generator, size: int, strands: int) -> TapeGraph:
    """Independent strands in random order, each narrow at its own places."""
    owner = rng.integers(0, strands, size)
    by_owner = np.argsort(owner, kind="stable")
    same = np.flatnonzero(np.diff(owner[by_owner]) == 0)
    widths = rng.integers(50, 100, size)
    widths[by_owner[25::50]] = rng.integers(1, 4, len(by_owner[25::50]))
    return build(ends_of(100 * strands, widths), 1 + by_owner[same + 1], 1 + by_owner[same])


def recurrence(rng: np.random.Generator, size: int, cells: int) -> TapeGraph:
    """Scalar cells in a ring, which read their neighbors: no cut is narrower than the ring."""
    del rng
    steps = max(size // (3 * cells), 2)
    state = 1 + np.arange(3 * cells * steps).reshape(steps, 3, cells)
    product, difference, value = state[:, 0], state[:, 1], state[:, 2]
    old = value[:-1]
    pairs = [
        (product[1:], old),
        (product[1:], np.roll(old, 1, axis=1)),
        (difference[1:], product[1:]),
        (difference[1:], np.roll(old, -1, axis=1)),
        (value[1:], difference[1:]),
        (value[1:], old),
        (difference[:1], product[:1]),
        (value[:1], difference[:1]),
    ]
    child, parent = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
    return build(ends_of(cells, np.ones(state.size)), child, parent)


FAMILIES: dict[str, Callable[[np.random.Generator, int], TapeGraph]] = {
    "layers of 10": lambda rng, size: layered(rng, size, 10, 1),
    "layers of 100": lambda rng, size: layered(rng, size, 100, 1),
    "layers of 100 arrays": lambda rng, size: layered(rng, size, 100, 50),
    "layers of 1000": lambda rng, size: layered(rng, size, 1000, 1),
    "ladder": ladder,
    "tree": tree,
    "5 strands": lambda rng, size: interleaved(rng, size, 5),
    "50 strands": lambda rng, size: interleaved(rng, size, 50),
    "ring of 10": lambda rng, size: recurrence(rng, size, 10),
}


def seconds(task: Callable[[], object]) -> float:
    """Return the shorter time of two runs."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def rows(sizes: list[int]) -> Iterator[str]:
    """Measure every family at every size."""
    for name, make in FAMILIES.items():
        for size in sizes:
            graph = make(np.random.default_rng(0), size)
            separators = cut_graph(graph)
            tracemalloc.start()
            cut_graph(graph)
            memory = tracemalloc.get_traced_memory()[1] / graph.size
            tracemalloc.stop()
            times = [
                seconds(lambda graph=graph: coarsen(graph)),
                seconds(lambda graph=graph: cut_graph(graph)),
                seconds(lambda graph=graph, found=separators: cut_into_chunks(graph, found)),
            ]
            live = int(frontier_widths(graph, tape_ranks(graph)).min())
            widths = [graph.input_width, *(s.width for s in separators), graph.output_width]
            edges = [max(chunk.edges, 1) for chunk in cut_into_chunks(graph, separators)]
            chain = JacobianChain.from_sizes(sizes=widths, edges=edges)
            times.append(seconds(lambda chain=chain: solve(chain)))
            planned = solve(chain).makespan
            plain = min(widths[0], widths[-1]) * graph.total_edges
            yield (
                f"{name:22}{graph.size:>8}{coarsen(graph).size:>8}"
                + "".join(f"{1e3 * t:>10.1f}" for t in times)
                + f"{memory:>8.0f}{widths[0]:>8}{live:>7}{min(widths):>7}{planned / plain:>9.4f}"
            )


def main() -> None:
    """Print the table; sizes may be given as arguments."""
    print(f"{'':22}{'values':>8}{'coarse':>8}{'coarsen':>10}{'find':>10}{'chunks':>10}{'solve':>10}", end="")
    print(f"{'memory':>8}{'input':>8}{'live':>7}{'cut':>7}{'cost':>9}")
    print(
        f"{'':38}{'ms':>10}{'ms':>10}{'ms':>10}{'ms':>10}{'B/value':>8}{'width':>8}{'width':>7}{'width':>7}{'/plain':>9}"
    )
    for row in rows([int(float(size)) for size in sys.argv[1:]] or [1_000, 10_000, 100_000]):
        print(row, flush=True)


if __name__ == "__main__":
    main()
