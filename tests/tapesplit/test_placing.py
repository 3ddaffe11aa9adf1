"""Adjoints of few elements, rows, columns or sums of a matrix: factors of what would be written out."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad, jacobian
from hypothesis import given, settings
from hypothesis import strategies as st

import tapesplit.rules.low_rank
import tapesplit.sweeps.clusters
import tapesplit.sweeps.factoring
from tapesplit import parallel_jacobian, record
from tapesplit.cost.factored import are_spoiled, with_ranks
from tapesplit.cost.work import work_table
from tapesplit.cuts.chunks import chunk_chain, cut_into_chunks
from tapesplit.cuts.graph import graph_of
from tapesplit.cuts.separators import Separator
from tapesplit.rules.moves import IndexMap
from tapesplit.structures.facts import facts_of
from tapesplit.structures.rows import with_row_part
from tapesplit.sweeps.directions import Diagonal, Rows
from tapesplit.sweeps.placing import of_elements, of_lines, of_sums
from tapesplit.sweeps.prediction import predict


@pytest.fixture
def always_factored(monkeypatch):
    factor_everything(monkeypatch)


def factor_everything(patch):
    patch.setattr(tapesplit.rules.low_rank, "_FEWEST_ELEMENTS", 1)
    patch.setattr(tapesplit.rules.low_rank, "_THINNER", 0)
    patch.setattr(tapesplit.sweeps.factoring, "_WORTH_FACTORING", 0)
    patch.setattr(tapesplit.sweeps.factoring, "FEWEST_DIRECTIONS", 1)
    patch.setattr(tapesplit.sweeps.clusters, "_WORTH_CONTRACTING", 0)


@st.composite
def moved(draw):
    """A matrix, elements of it that are moved to some places of a result, and directions of the latter."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    length = draw(st.integers(1, 12))
    sources = draw(st.lists(st.integers(-1, shape[0] * shape[1] - 1), min_size=length, max_size=length))
    moves = IndexMap.of_sources(np.array(sources), shape[0] * shape[1])
    return np.zeros(shape, draw(st.sampled_from([np.float64, np.complex128]))), moves


def written_out(rows, moves, value):
    found = moves.scatter(rows)
    return (found if np.iscomplexobj(value) else found.real).reshape(len(rows), *value.shape)


@settings(deadline=None)
@given(moved(), st.integers(-3, 3), st.integers(0, 12), st.integers(0, 15), st.booleans())
def test_elements_that_are_moved(move, origin, start, stop, is_complex):
    """In any window of directions, which may begin with any element."""
    value, moves = move
    values = np.arange(1.0, moves.length + 1.0) * (1.0 - 2.0j if is_complex else 1.0)
    diagonal = Diagonal.of(values, origin, start, max(start, stop))
    if diagonal.start == diagonal.stop:
        return
    found = of_elements(diagonal, moves, value)
    expected = written_out(diagonal.dense().rows, moves, value)
    assert (found.start, found.stop) == (diagonal.start, diagonal.stop)
    np.testing.assert_array_equal(found.dense().rows, expected)


@settings(deadline=None)
@given(moved(), st.integers(1, 4), st.booleans())
def test_lines_that_are_moved(move, count, is_complex):
    value, moves = move
    rows = np.arange(1.0, count * moves.length + 1.0).reshape(count, -1) * (1.0 - 2.0j if is_complex else 1.0)
    with pytest.MonkeyPatch.context() as patch:
        factor_everything(patch)
        found = of_lines(Rows(7, rows), moves, value)
    if not moves.targets.size:  # rank zero
        return
    rank = min(np.unique(places).size for places in np.divmod(moves.sources, value.shape[1]))
    assert found.factors.rank == moves.lines(value.shape).places.size == rank
    assert found.start == 7
    np.testing.assert_array_equal(found.dense().rows, written_out(rows, moves, value))


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.booleans(), st.integers(-3, 3), st.integers(0, 4), st.data())
def test_sums_of_rows_and_columns(rows, columns, along_rows, origin, start, data):
    weights = np.arange(1.0, rows * columns + 1.0).reshape(rows, columns)
    values = np.arange(1.0, (rows if along_rows else columns) + 1.0)
    stop = data.draw(st.integers(start, 8))
    diagonal = Diagonal.of(values, origin, start, stop)
    if diagonal.start == diagonal.stop:
        return
    given_rows = diagonal.dense().rows
    expected = weights * (given_rows[:, :, None] if along_rows else given_rows[:, None])
    found = of_sums(diagonal, weights, along_rows=along_rows)
    assert (found.start, found.stop) == (diagonal.start, diagonal.stop)
    np.testing.assert_array_equal(found.dense().rows, expected)


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_what_is_not_finite_is_written_out(number):
    value, moves = np.zeros((3, 3)), IndexMap.of_sources(np.array([0, 4, 8]), 9)
    values = np.array([1.0, number, 2.0])
    diagonal = Diagonal.of(values, 0, 0, 3)
    weights = np.array([[1.0, 2.0, 3.0], [4.0, number, 5.0], [6.0, 7.0, 8.0]])
    assert of_elements(diagonal, moves, value) is None
    assert of_lines(diagonal.dense(), moves, value) is None
    assert of_sums(diagonal, np.ones((3, 3)), along_rows=True) is None
    assert of_sums(Diagonal.of(np.ones(3), 0, 0, 3), weights, along_rows=False) is None
    assert of_sums(Diagonal.of(np.ones(1), 0, 0, 1), weights[:1], along_rows=True) is not None


def test_many_lines_are_written_out():
    moves = IndexMap.of_sources(np.arange(400)[::-1], 400)
    assert of_lines(Rows(0, np.ones((2, 400))), moves, np.zeros((20, 20))) is None


N = 12
W, V = np.random.default_rng(0).uniform(-1.0, 1.0, (2, N, N)) / N
X = np.linspace(0.5, 1.5, N)
INFINITE = {
    "a diagonal": lambda x: anp.sqrt(anp.diag(V @ (W * x)) * np.arange(N)),
    "a row": lambda x: anp.sqrt((V @ (W * x))[3] * np.arange(N)),
    "sums": lambda x: anp.sum(anp.sqrt(np.arange(N) * (V @ (W * x)) ** 2), axis=1),
    "an inverse": lambda x: anp.sqrt(anp.diag(anp.linalg.inv(np.eye(N) + W * x)) * np.arange(N)),
    "vectors of equal values": lambda x: anp.linalg.eigh(anp.diag(np.arange(N) // 2 + 0.0 * x))[1][:, 0],
}


@pytest.mark.parametrize("name", INFINITE)
def test_infinities_spread_as_without_factors(monkeypatch, name):
    def found():
        with np.errstate(all="ignore"):
            return parallel_jacobian(INFINITE[name], method="adjoint")(X)

    expected = found()
    factor_everything(monkeypatch)
    np.testing.assert_allclose(found(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("always_factored")
def test_other_seeds_than_the_identity():
    """A row of directions begins with many elements."""
    fun = lambda x: anp.diag(anp.linalg.inv(np.eye(N) + W * x))  # noqa: E731
    jac = parallel_jacobian(lambda x: V @ fun(x) + fun(x)[0], method="adjoint")
    expected = V @ jacobian(fun)(X) + jacobian(fun)(X)[0]
    np.testing.assert_allclose(jac(X), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("limit", [None, 10**5, 3 * 10**4])
def test_blocks_of_directions(limit):
    n = 40
    table = 2.0 * np.eye(n) + np.random.default_rng(1).uniform(-1.0, 1.0, (n, n)) / n
    hessian_of = grad(lambda x: anp.linalg.slogdet(table + anp.diag(x))[1])
    x = np.linspace(0.5, 1.0, n)
    jac = parallel_jacobian(hessian_of, method="adjoint", memory_limit=limit, machines=1)
    inverse = np.linalg.inv(table + np.diag(x))
    np.testing.assert_allclose(jac(x), -inverse * inverse.T, rtol=1e-10, atol=1e-13)


def rows_of_inverse(n, p):
    table = np.random.default_rng(2).standard_normal((n, p))
    return lambda x: anp.sum(table @ anp.linalg.inv((table.T * x) @ table) * table, axis=1), np.ones(n)


def known_of(fun, x):
    tape = record(fun, x)
    facts = with_ranks(facts_of(tape))
    return tape, facts, graph_of(tape, facts)


def test_a_cut_in_a_matrix_makes_its_adjoints_dense():
    """Unless these are an identity there: each direction has one element, which are factors again."""
    tape, facts, graph = known_of(*rows_of_inverse(60, 20))
    (inner,) = (index for index in facts.ranks if tape.label(index) == "inv")
    place = np.searchsorted(graph.entries, inner)
    chunks = cut_into_chunks(graph, (Separator((int(inner),), int(graph.widths[place]), "minimal"),))
    assert [are_spoiled(facts, chunk.targets) for chunk in chunks] == [True, False]
    table = work_table(facts)
    seconds = [
        predict(facts, table, chunks[0], 60, adjoint_mode=True, identity=identity).seconds
        for identity in (True, False)
    ]
    assert seconds[0] < seconds[1]
    links = chunk_chain(chunks, facts, table.spared_edges).links
    assert links[0].adjoint_cost == links[0].edges
    assert links[1].adjoint_cost < links[1].edges


def test_rows_are_told_apart_as_dense_adjoints():
    tape, facts, graph = known_of(*rows_of_inverse(60, 30))
    in_rows = with_row_part(tape, facts, graph.entries, float("inf"))
    assert not facts.ranks.keys().isdisjoint(in_rows.row_part.ends)
    assert not in_rows.ranks


def test_matrices_begin_with_elements_too():
    """An identity of a matrix's elements is passed on by factors."""
    x = np.linspace(0.5, 1.5, 16)
    table = np.random.default_rng(3).uniform(-1.0, 1.0, (16, 16)) / 16
    fun = lambda x: anp.linalg.inv(np.eye(16) + table * x) @ table  # noqa: E731
    tape, facts, _ = known_of(fun, x)
    assert [tape.label(index) for index in facts.ranks] == ["matmul", "inv", "add", "multiply"]
    np.testing.assert_allclose(
        parallel_jacobian(fun, method="adjoint")(x), jacobian(fun)(x), rtol=1e-10, atol=1e-13
    )


def test_a_matrix_of_which_nothing_is_read():
    def fun(x):
        return anp.triu(anp.linalg.inv(3.0 * np.eye(20) + x / 20.0), 20)

    x = np.linspace(0.5, 1.5, 20)
    np.testing.assert_array_equal(parallel_jacobian(fun, method="adjoint")(x), np.zeros((20, 20, 20)))


COMPLEX = np.exp(1j * np.arange(1600.0)).reshape(40, 40) + 3.0 * np.eye(40)
WEIGHTS = np.cos(np.arange(1600.0)).reshape(40, 40)


def solved(x):
    return anp.linalg.solve(COMPLEX, WEIGHTS * x)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: anp.sum(WEIGHTS * anp.imag(solved(x)), 1),
        lambda x: anp.sum(WEIGHTS * anp.imag(anp.conj(solved(x))), 0),
        lambda x: anp.sum(anp.real(solved(x)) ** 2 + anp.imag(solved(x)) ** 2, 1),
        lambda x: anp.sum(WEIGHTS * anp.real(COMPLEX[0] * solved(x)), 1),
        lambda x: anp.sum(WEIGHTS * anp.real(solved(x) / (0.3 + 2j)), 1),
        lambda x: anp.sum(WEIGHTS * anp.real(anp.exp(1j * x[0]) * solved(x)), 1),
        lambda x: anp.linalg.norm(anp.imag(anp.linalg.inv(COMPLEX + solved(x))), axis=1),
        lambda x: anp.sum(anp.abs(COMPLEX @ anp.linalg.inv(3.0 * np.eye(40) + WEIGHTS * x / 40)) ** 2, 1),
        lambda x: anp.diag(anp.imag(COMPLEX[0] * solved(x))),
    ],
)
def test_complex_matrices_behind_sums_of_real_parts(fun):
    x = np.linspace(0.5, 1.5, 40)
    want = jacobian(fun)(x)
    found = parallel_jacobian(fun, method="adjoint")(x)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-10 * np.abs(want).max())
