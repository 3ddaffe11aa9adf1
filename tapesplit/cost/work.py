"""Work: the amounts of each kind of work that the entries of a tape make, whatever the machine."""

from dataclasses import dataclass, fields
from math import prod
from typing import Any, Final, NamedTuple

import autograd.numpy as anp
import numpy as np

from tapesplit.arrays import BoolArray, FloatArray, IntArray
from tapesplit.cost.contracted import predicted_contractions
from tapesplit.cost.ends import picked_products
from tapesplit.cost.factored import spared
from tapesplit.cost.formulas import shared_formulas
from tapesplit.matrix_product import UNCACHED
from tapesplit.rules import Bulk, Movement, is_reduction
from tapesplit.structures.facts import CallKind, TapeFacts
from tapesplit.structures.forms import is_shape, number_shape

__all__ = ["ROW", "Work", "WorkTable", "moved_while_read", "total_work", "work_table"]


@dataclass(frozen=True, slots=True)
class Work:
    """How much work of each kind some entries of a tape make.

    Parameters
    ----------
    formulas
        Partial derivatives of the different kinds of calls, unless constant; those in different kinds of
        merged operations count separately.
    steps
        Steps of array sweeps: one for each entry, more for products, other functions, and reductions with
        weights.
    elements
        Elements of elementwise operations.
    dear
        What the formulas of some, such as special functions, take longer than others, in such elements.
    moved
        Elements of movements that change their order, of sums, of the results of products and of larger
        operands, those that merged elementwise operations read from outside, and more for rows and stacks,
        which NumPy takes one by one.
    unmoved
        Part of ``moved`` that adjoints save because they stay factored.
    factored
        Entries whose adjoints stay factored: two arrays, which take as long as one more step.
    product_fma
        Scalar edges of other primitives with a vector rule, and of operations that reductions absorb; they
        count more where BLAS does not multiply them.
    read
        Cost of reading the constant matrices of products and of factorizing the computed matrices of linear
        systems, once for all directions, in moved elements.
    spared_tangents, spared_adjoints
        Parts of ``product_fma`` that tangents and adjoints save: where directions are still diagonal, see
        `tapesplit.cost.ends`, and for adjoints also where these stay factored.
    looped
        Calls of primitives without a vector rule.
    local, local_loops
        Part of ``looped`` that has no JVP, and the elements of the results of these calls: tangents take a
        VJP for each element.
    inner, coefficients
        Scalar edges inside of merged elementwise operations, and all others.
    numbers, arrays
        Elementwise operations on single numbers, and those on arrays that are left once they are merged.
    block_steps, block_moved, block_loops
        Cost of finding the derivatives of blocks: in steps, in moved elements, and in elements of the results
        of blocks without a vector rule.
    formless
        Entries that have no scalar form, or one only where directions share seeds.
    dense
        The latter alone.
    """

    formulas: int
    steps: int
    elements: int
    dear: int
    moved: int
    unmoved: int
    factored: int
    product_fma: int
    read: int
    spared_tangents: int
    spared_adjoints: int
    looped: int
    local: int
    local_loops: int
    inner: int
    coefficients: int
    numbers: int
    arrays: int
    block_steps: int
    block_moved: int
    block_loops: int
    formless: int
    dense: int


class WorkTable(NamedTuple):
    """How much work of each kind every entry of a tape makes.

    Parameters
    ----------
    lines
        Shape ``(22, n)``: a row for each field of `Work` but the first one.
    sharing
        Shape ``(n,)``: entries with the same number share formulas, see `shared_formulas`.
    formulas
        Number of formulas that the entries with each number share.
    spared_edges
        Shape ``(n,)``: scalar edges that factored adjoints do not go through, see `tapesplit.cost.factored`.
    """

    lines: FloatArray
    sharing: IntArray
    formulas: IntArray
    spared_edges: IntArray

    def line(self, name: str) -> FloatArray:
        """Return the row of ``lines`` for a field of `Work`."""
        return self.lines[_LINES.index(name)]


def work_table(facts: TapeFacts) -> WorkTable:
    """Return how much work of each kind every entry of a tape makes."""
    elementwise = facts.elementwise
    of_kind = np.array([_work_of_kind(kind) for kind in facts.kinds])
    steps, dear, moves, sums, weighted, pace, reads, cubic, looped, local = of_kind.T.take(facts.kind, axis=1)
    sizes = np.maximum(facts.sizes, 0)
    is_inner = facts.reader != np.arange(facts.reader.size)
    inner = (sizes >> facts.is_complex) * is_inner  # complex ones count once, as in edges
    outer = _parts(facts) * (facts.scalar_edges - inner)
    pace = pace * _real_products(facts)
    is_block = facts.blocks > 0
    contracted, factored = predicted_contractions(facts), spared(facts)
    picked_tangents, picked_adjoints = picked_products(facts)
    operands = _larger_operands(facts, pace > 0)
    moved = (
        sizes * (moves + (pace > 0) * (facts.stacked == 0))
        + facts.edges * sums
        + outer * elementwise
        + _STACKED * facts.stacked
        + _SMALL_PRODUCT * _small_products(facts, pace > 0)
        + ROW * _rows(facts, weighted > 0, elementwise & ~contracted.operations, contracted.turned)
        + contracted.moved
        + operands
    )
    product_fma = facts.edges * pace + contracted.product_fma
    lines = {
        "steps": steps + contracted.steps,
        "elements": sizes * elementwise,
        "dear": sizes * dear,
        "moved": moved,
        "unmoved": np.where(factored.whole, np.maximum(moved, 0), operands * (factored.edges > 0)),
        "factored": factored.whole,
        "product_fma": product_fma,
        "read": _read(facts, reads) + _eliminations(facts, cubic),
        "spared_tangents": contracted.picked_tangents + picked_tangents * pace,
        "spared_adjoints": contracted.picked_adjoints + (picked_adjoints + factored.edges) * pace,
        "looped": looped,
        "local": local,
        "local_loops": facts.elements * local,
        "inner": inner,
        "coefficients": np.where(is_block, facts.blocks, outer),
        "numbers": elementwise & (sizes == 1),
        "arrays": elementwise & (sizes > 1) & ~is_inner,
        "block_steps": is_block * np.where(facts.joined, 1, _BLOCK),
        "block_moved": _block_seeds(facts) * (moved + _CUBE * product_fma),
        "block_loops": sizes * (is_block & looped),
        "formless": ~facts.scalar_apart,
        "dense": facts.scalar & facts.dense,
    }
    summed = np.array([lines[name] for name in _LINES], dtype=np.float64)
    return WorkTable(summed, *shared_formulas(facts), factored.edges)


_LINES: Final = tuple(field.name for field in fields(Work))[1:]


_FOR_EACH_DIRECTION: Final = [
    _LINES.index(name)
    for name in ("moved", "unmoved", "product_fma", "spared_tangents", "spared_adjoints", "looped", "local")
]
"""Rows of a table whose work array steps do again for each direction."""


def _work_of_kind(kind: CallKind) -> tuple[int, ...]:
    """Return what the work of a kind of calls depends on besides sizes, in the order that `work_table` takes.

    The pace is the cost of a scalar edge, in multiply-adds of a product of matrices; 0 if there are no edges
    to be multiplied.
    """
    rule, is_sum = kind.rule, is_reduction(kind.rule)
    steps, pace, is_weighted = 1, 0, is_sum and not kind.is_local
    dear = rule.pace - 1 if kind.is_elementwise else 0  # type: ignore[union-attr] # it has partials
    cubic = rule.cubic if isinstance(rule, Bulk) and 0 in kind.argnums else 0
    if is_weighted:
        steps += _WEIGHING
    elif isinstance(rule, Bulk) and not is_sum:
        steps += max(_HEAVY, rule.steps * len(kind.argnums))
        pace = rule.pace
    moves = isinstance(rule, Movement) and not _is_view(kind)
    reads = kind.primitive in _READING and len(kind.argnums) == 1
    loops = kind.is_looped, kind.needs_local_jacobian
    return steps, dear, moves, is_sum, is_weighted, pace, reads, cubic, *loops


def _is_view(kind: CallKind) -> bool:
    """Tell whether the elements of an array stay in order, so that directions get another shape, no more."""
    return kind.arity <= _VIEWS.get(kind.primitive, 0) and "order" not in kind.keywords


def _block_seeds(facts: TapeFacts) -> FloatArray:
    """Count the directions that find the derivatives of each block: elements of a slice of its result."""
    read = np.bincount(facts.children, np.maximum(facts.sizes, 0)[facts.parents], facts.sizes.size)
    seeds: FloatArray = facts.blocks / np.maximum(read, 1)
    return seeds


def _parts(facts: TapeFacts) -> IntArray | int:
    """Count the real coefficients for each scalar edge: four between complex numbers."""
    if not facts.is_complex.any():
        return 1
    return (1 + facts.is_complex) * (1 + _reads_complex(facts))


def _real_products(facts: TapeFacts) -> IntArray | int:
    """Count the real multiply-adds for each one of sums and products: four where a number is complex."""
    if not facts.is_complex.any():
        return 1
    is_product = np.array([kind.is_local for kind in facts.kinds])[facts.kind]
    return 1 + 3 * ((facts.is_complex | _reads_complex(facts)) & is_product)


def _reads_complex(facts: TapeFacts) -> BoolArray:
    """Tell which calls read a complex number that depends on the inputs."""
    found = np.zeros_like(facts.is_complex)
    found[facts.children[facts.is_complex[facts.parents]]] = True
    return found


def _small_products(facts: TapeFacts, is_product: BoolArray) -> FloatArray:
    """Count the products of matrices that calls on stacks of matrices make, by their edges."""
    entries, products = np.flatnonzero((facts.stacked > 0) & is_product), np.zeros(facts.edges.size)
    if not entries.size:
        return products
    operands = facts.form[facts.parents[facts.first_parent[entries]]]
    elements = [max(1, prod((number_shape(form) or ())[-2:])) for form in facts.forms]
    products[entries] = facts.edges[entries] / np.array(elements)[operands] ** 1.5
    return products


def _rows(facts: TapeFacts, weighted: BoolArray, elementwise: BoolArray, turned: IntArray) -> IntArray:
    """Count the rows (of the last axis) that NumPy loops over where operands broadcast or have weights.

    ``turned`` counts how often it does so where reductions absorb operations.
    """
    rows = np.array([prod(form[:-1]) if is_shape(form) and len(form) > 1 else 0 for form in facts.forms])
    if not rows.any():  # numbers and vectors only
        return rows[facts.form]
    child, read = facts.children, facts.sizes[facts.parents]
    turns = turned + weighted
    turns[child[(read > 1) & (read < facts.sizes[child]) & elementwise[child]]] = 1
    most: IntArray = rows[facts.form]
    np.maximum.at(most, child, rows[facts.form[facts.parents]])
    return most * turns


def _read(facts: TapeFacts, reads: IntArray) -> FloatArray:
    """Return the cost of reading the constant operand of products, in moved elements.

    The sizes follow from the edges: an ``m × n`` operand times an ``n × p`` one makes ``m × p`` elements with
    ``m n p`` edges.
    """
    entries, read = np.flatnonzero(reads), np.zeros(facts.edges.size)
    if not entries.size:
        return read
    operands, edges = facts.parents[facts.first_parent[entries]], facts.edges[entries]
    n, m = (edges // np.maximum(facts.sizes[ends], 1) for ends in (entries, operands))
    read[entries] = moved_while_read(n * m)
    return read


def moved_while_read(elements: IntArray | int) -> FloatArray:
    """Return how many elements could be moved in the time a product takes to read a matrix of this size."""
    return np.where(elements > UNCACHED, _READ, _READ_IN_CACHE) * elements


def _larger_operands(facts: TapeFacts, is_product: BoolArray) -> IntArray:
    """Count the elements of active operands of products that are larger than their result.

    Adjoints write them and tangents read them, which takes longer than the multiply-adds if each result has
    few: as for a matrix that is multiplied by a vector, whose adjoints are outer products. One that several
    products read counts once: its adjoints are added up before they are written.
    """
    operands = np.zeros(facts.edges.size, dtype=np.int64)
    larger = is_product[facts.children] & (facts.sizes[facts.parents] > facts.sizes[facts.children])
    parents, first = np.unique(facts.parents[larger], return_index=True)
    np.add.at(operands, facts.children[larger][first], facts.sizes[parents])
    return operands


def _eliminations(facts: TapeFacts, cubic: IntArray) -> FloatArray:
    """Return the cost of factorizing the matrix of linear systems, once for each matrix, in moved elements.

    Constant ones are left out: loops solve with one of them in every step.
    """
    entries, moved = np.flatnonzero(cubic), np.zeros(facts.edges.size)
    if not entries.size:
        return moved
    matrices, first = np.unique(facts.parents[facts.first_parent[entries]], return_index=True)
    forms = [facts.forms[i] for i in facts.form[matrices]]
    cubes = np.array([prod(form) * form[-1] if is_shape(form) else 0 for form in forms])
    counts = facts.sizes[matrices] / [max(1, prod(form[-2:])) if is_shape(form) else 1 for form in forms]
    moved[entries[first]] = cubic[entries[first]] * (_CUBE * cubes + _ELIMINATION * counts)
    return moved


def total_work(table: WorkTable, entries: IntArray, carried: FloatArray | None = None) -> Work:
    """Sum up the work of some entries, given by their increasing tape indices.

    What is done for each direction counts by the part of these that is ``carried`` through each entry.
    """
    first, last = (entries[0], entries[-1]) if len(entries) else (0, -1)
    chosen = np.zeros(last + 1 - first)
    chosen[entries - first] = 1.0
    formulas = table.formulas[np.bincount(table.sharing[entries]).nonzero()].sum()
    lines = table.lines[:, first : first + chosen.size]
    sums = lines @ chosen
    if carried is not None:
        chosen[entries - first] = carried
        sums[_FOR_EACH_DIRECTION] = lines[_FOR_EACH_DIRECTION] @ chosen
    return Work(*map(int, (formulas, *sums)))


_VIEWS: Final[dict[Any, int]] = {anp.reshape: 2, anp.ravel: 1, anp.squeeze: 2, anp.expand_dims: 2}
"""Movements that keep the order of elements, with so many arguments at most."""
_READING: Final = frozenset({anp.matmul, anp.dot, anp.inner})
"""Products whose constant operand is a matrix that is read once."""
_READ, _READ_IN_CACHE = 0.6, 0.2
"""Cost of reading an element of a matrix from memory, and from caches, in moved elements."""
_CUBE: Final = 0.08
"""Cost of a multiply-add in a product of matrices, in moved elements."""
_ELIMINATION: Final = 250
"""Cost of turning to the next matrix of a stack to factorize it, in moved elements."""
ROW: Final = 20
"""Cost of NumPy's turning to the next row if operands broadcast or have weights, in moved elements."""
_STACKED: Final = 4
"""Cost of multiplying an element of a stack of small matrices, in moved elements."""
_SMALL_PRODUCT: Final = 45
"""Cost of NumPy's turning to the next product of two matrices in a stack, in moved elements."""
_BLOCK: Final = 4
"""Cost of finding the derivatives of a block that is not joined with like ones, in steps."""
_HEAVY: Final = 2
"""Least cost of calling a product or another function beyond that of an elementwise one, in steps."""
_WEIGHING: Final = 5
"""Cost of finding the weights of a reduction, in steps."""
