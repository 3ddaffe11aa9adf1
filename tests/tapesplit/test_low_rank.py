"""Adjoints of matrices that stay factored: the same derivatives, in less memory."""

import functools

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad, jacobian
from autograd.extend import defvjp, primitive
from hypothesis import given, settings
from hypothesis import strategies as st
from traced_memory import traced_peak

import tapesplit.rules.low_rank
import tapesplit.sweeps.clusters
import tapesplit.sweeps.factoring
from tapesplit import defvector, execute, parallel_jacobian, record
from tapesplit.cost.factored import spared, with_ranks
from tapesplit.cost.work import work_table
from tapesplit.cuts.chunks import cut_into_chunks
from tapesplit.cuts.graph import graph_of
from tapesplit.rules.low_rank import Factors, moved_back
from tapesplit.rules.moves import IndexMap
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps.array_steps import BulkStep
from tapesplit.sweeps.array_sweep import compile_array_sweep
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.directions import LowRank, accumulate
from tapesplit.sweeps.factoring import factored_sizes, worth_factoring
from tapesplit.sweeps.map_step import MapStep

N = 12
RANDOM = np.random.default_rng(0)
W, V = RANDOM.uniform(-1.0, 1.0, (2, N, N)) / N
STACK = RANDOM.uniform(-1.0, 1.0, (N, N, N)) / N
EYE, B, X = np.eye(N), RANDOM.uniform(-1.0, 1.0, N), RANDOM.uniform(0.2, 1.0, N)
THIN = RANDOM.uniform(-1.0, 1.0, (N, 2))


@pytest.fixture
def always_factored(monkeypatch):
    factor_matrices_of(monkeypatch, thinner=0)


def factor_matrices_of(monkeypatch, *, thinner):
    """Factor small matrices, if factors of so many times their elements are smaller than they are."""
    monkeypatch.setattr(tapesplit.rules.low_rank, "_FEWEST_ELEMENTS", 1)
    monkeypatch.setattr(tapesplit.rules.low_rank, "_THINNER", thinner)
    monkeypatch.setattr(tapesplit.sweeps.factoring, "_WORTH_FACTORING", 0)
    monkeypatch.setattr(tapesplit.sweeps.clusters, "_WORTH_CONTRACTING", 0)
    monkeypatch.setattr(tapesplit.sweeps.factoring, "FEWEST_DIRECTIONS", 1)


def solved(matrix, side=B):
    return anp.linalg.solve(EYE + matrix, side)


def rows_of(x):
    return anp.reshape(x, (N, 1))


def used_again(x):
    K = (W * x) @ V
    return K @ (V @ (K @ (V @ (K @ x))))


def scaled(x):
    return (W * x) @ V


def two_windows(K, x):
    return anp.concatenate([K @ B, K @ x])


def mixed(K):
    """Put elements where rows and columns do not stay together."""
    n = len(K)
    rows, columns = np.divmod(np.random.default_rng(1).permutation(n * n).reshape(n, n), n)
    return K[rows, columns]


def many_windows(K):
    return anp.concatenate([K @ row for row in V])


def unlike_windows(K):
    return anp.concatenate([K @ B, anp.ravel(K @ THIN)])


def many_terms(x):
    """A matrix that is merged with no operation that reads it: together they would read too many values."""
    weights = anp.concatenate([x, x**2])
    return sum(weights[i] * STACK[i % N] for i in range(20))


@primitive
def tripled(K):
    return 3.0 * K


defvjp(tripled, lambda ans, K: lambda g: 3.0 * g)
defvector(tripled, 3.0 + 0.0j)


def many_parts(K):
    return K @ B + sum(anp.sum(K[i:] @ B) for i in range(N))


def inverse(x):
    return anp.linalg.inv(EYE + W * x)


def likelihood(K):
    return anp.linalg.slogdet(K)[1] + B @ anp.linalg.solve(K, B)


def parts_of(K, x):
    """Windows of directions: some for elements, some for rows, some for the parameters themselves."""
    return anp.concatenate([x, anp.diag(K), K[3], x, K[:, 2], anp.ravel(K[4:6])])


def symmetric(x):
    return anp.diag(np.arange(N)) + W * x + (W * x).T


PROGRAMS = {
    "assembled by products": lambda x: solved(V.T @ (anp.exp(x)[:, None] * W)),
    "a scaled product": lambda x: solved((W * x) @ V.T),
    "weights and an active side": lambda x: solved(W * anp.tanh(x)[:, None], x),
    "several sides": lambda x: solved(W * x, THIN).ravel(),
    "einsum": lambda x: solved(anp.einsum("e,eij->ij", x, STACK)),
    "einsum of three": lambda x: solved(anp.einsum("ie,e,je->ij", W, x, V)),
    "tensordot": lambda x: solved(anp.tensordot(x, STACK, 1)),
    "outer": lambda x: solved(anp.outer(x, anp.sin(x)) / N),
    "three diagonals": lambda x: solved(anp.diag(x) - anp.diag(x[1:], 1) / N - anp.diag(x[:-1], -1) / N),
    "a part": lambda x: anp.linalg.solve(np.eye(6) + (W * x)[2:8, 1:7], B[:6]),
    "rows and columns": lambda x: anp.linalg.solve(np.eye(3) + (W * x)[[2, 7, 5]][:, [1, 0, 3]], B[:3]),
    "repeated rows": lambda x: anp.linalg.solve(np.eye(3) + (W * x)[[2, 2, 5]][:, [1, 0, 3]], B[:3]),
    "blocks": lambda x: anp.linalg.solve(
        np.eye(2 * N)
        + anp.concatenate([anp.concatenate([W * x, V], axis=1), anp.concatenate([V.T, V * x], axis=1)]),
        np.tile(B, 2),
    ),
    "blocks and an empty one": lambda x: solved(anp.concatenate([(W * x)[:7], (W * x)[:0], (V * x)[7:]])),
    "a transpose": lambda x: solved((W * x).T),
    "a symmetric part": lambda x: solved(W * x + (W * x).T),
    "another shape": lambda x: solved(anp.reshape(anp.reshape(W * x, (N * N,)), (N, N))),
    "an inverse": lambda x: anp.linalg.inv(EYE + W * x) @ anp.sin(x),
    "an inverse times a matrix": lambda x: (anp.linalg.inv(EYE + W * x) @ V) @ x,
    "a row times a matrix": lambda x: x @ (V @ anp.tanh(W * x)),
    "a quadratic form": lambda x: anp.array([x @ (W * x) @ x, x @ (V * rows_of(x)) @ B]),
    "dot": lambda x: anp.dot(anp.dot(W * x, V * rows_of(x)), x),
    "einsum of a vector": lambda x: anp.einsum("ij,j->i", (W * x) @ V, x),
    "einsum of a row": lambda x: anp.einsum("ij,i->j", (W * x) @ V, x),
    "the same factors": lambda x: (W * x) @ x + (W * x) @ B + B @ (W * x),
    "used again": used_again,
    "many terms by a matrix": lambda x: solved(V * many_terms(x)),
    "many terms by rows": lambda x: solved(B * many_terms(x)),
    "many terms by columns": lambda x: solved(rows_of(B) * many_terms(x)),
    "many terms by a number": lambda x: solved(3.0 * many_terms(x)),
    "many terms by a complex constant": lambda x: solved(tripled(many_terms(x))),
    "many terms by an active row": lambda x: solved(x * many_terms(x) + anp.sum(x)),
    "with a number and a row": lambda x: solved((W * x) @ V + anp.sum(x) - x),
    "solved twice": lambda x: anp.linalg.solve(EYE + W * x, anp.linalg.solve(EYE + V * x, W * x)) @ x,
    "two windows": lambda x: anp.concatenate([scaled(x) @ B, scaled(x) @ x, x]),
    "one matrix in two windows": lambda x: two_windows((W * x) @ V, x),
    "one matrix in many windows": lambda x: many_windows((W * x) @ V),
    "two windows of another rank": lambda x: unlike_windows((W * x) @ V),
    "parts again and again": lambda x: many_parts((W * x) @ V),
    "a triangle": lambda x: anp.tril(W * x) @ B,
    "no element of a triangle": lambda x: anp.triu((W * x) @ V, N) @ B + x,
    "the identity minus a product": lambda x: (EYE - V @ (W * x)) @ B,
    "several of them": lambda x: B @ (EYE - 2.0 * (V @ anp.exp(W * x) + (W * x) @ V)),
    "a product and another matrix": lambda x: (EYE - V @ (W * x) + anp.tanh(W @ (V * x))) @ B,
    "a difference solved": lambda x: solved(-3.0 * (V @ (W * x))),
    "elements picked in pairs": lambda x: solved((V @ (W * x))[np.ix_(range(N), [1, 0, *range(2, N)])]),
    "rolled": lambda x: anp.roll((W * x) @ V, 3) @ B,
    "rolled along an axis": lambda x: anp.roll((W * x) @ V, 3, axis=0) @ B,
    "flipped": lambda x: anp.flipud((W * x) @ V) @ B + ((W * x) @ V)[:, ::-1] @ x,
    "many blocks": lambda x: anp.concatenate([x[i] * W for i in range(10)], axis=1) @ np.tile(B, 10),
    "lists": lambda x: anp.einsum("ij,j->i", (W * x) @ V, list(B)),
    "einsum of three operands": lambda x: anp.einsum("ij,j,j->i", (W * x) @ V, B, B),
    "a product of what is moved": lambda x: anp.tanh((anp.reshape(x, (3, 4)) @ W[:4]) @ B),
    "a column picked": lambda x: ((W * x) @ V)[:, 3] + ((W * x) @ V)[2],
    "a long double": lambda x: ((np.longdouble(1.0) * W * x) @ V) @ x,
    "single precision": lambda x: ((W.astype(np.float32) * x) @ V) @ x,
    "complex weights": lambda x: anp.real(((W * x) @ (V + 0.3j * W)) @ (x + 0.1j * B)),
    "the Hessian of a determinant": grad(lambda x: anp.linalg.slogdet(EYE + W + anp.diag(x))[1]),
    "a design": grad(lambda x: anp.linalg.slogdet(THIN.T @ (x[:, None] * THIN))[1]),
    "a larger design": grad(lambda x: anp.linalg.slogdet(W[:, :7].T @ anp.diag(x) @ W[:, :7])[1]),
    "the trace of an inverse": grad(lambda x: anp.trace(anp.linalg.inv(EYE + W * x))),
    "a likelihood": grad(lambda x: likelihood(EYE + W @ W.T + anp.diag(anp.exp(x)))),
    "the diagonal of an inverse": lambda x: anp.diag(inverse(x)),
    "its square": lambda x: anp.diag(inverse(x)) ** 2 / x,
    "elements of an inverse": lambda x: inverse(x)[[0, 3, 3, 5], [1, 2, 2, 7]],
    "one element many times": lambda x: inverse(x)[2, 3] * x,
    "a row of an inverse": lambda x: anp.sin(inverse(x)[3]),
    "columns of an inverse": lambda x: anp.ravel(inverse(x)[:, 2:4] @ THIN[:2]),
    "a block of an inverse": lambda x: anp.ravel(inverse(x)[2:8, 3:5]),
    "columns in any order": lambda x: anp.ravel(inverse(x)[:, [4, 1, 4]]),
    "parts of an inverse": lambda x: parts_of(inverse(x), x),
    "sums of rows": lambda x: anp.sum(V @ inverse(x) * W, axis=1),
    "sums of columns": lambda x: anp.sum(anp.tanh(V @ inverse(x)), axis=0, keepdims=True)[0],
    "means of rows": lambda x: anp.mean(rows_of(B) * inverse(x) - x * inverse(x), axis=1),
    "a part of an inverse in parts": lambda x: anp.triu(inverse(x))[:, 3],
    "quadratic forms": lambda x: anp.einsum("ij,jk,ik->i", V, inverse(x), W),
    "quadratic forms with weights": lambda x: anp.einsum("i,ij, jk,ik,->i", x, V, inverse(x), W, x[0]),
    "quadratic forms and lists": lambda x: anp.einsum(V, [0, 1], inverse(x), [1, 2], W, [0, 2], [0]),
    "products of rows": lambda x: anp.einsum("ij,ji->i", THIN, anp.linalg.solve(EYE + W * x, THIN).T),
    "products of columns": lambda x: anp.einsum("ji,ji->i", inverse(x), W),
    "sums of rows by einsum": lambda x: anp.einsum("ij->i", inverse(x)),
    "sums of one side": lambda x: anp.einsum("ij,i,ik->i", THIN, x, inverse(x)),
    "a matrix in matrices": lambda x: anp.einsum("ij,kij->k", inverse(x), STACK),
    "a complex quadratic form": lambda x: anp.real(anp.einsum("ij,jk,ik->i", V * 1j, inverse(x), V + 1j * W)),
    "single precision forms": lambda x: anp.einsum("ij,jk,ik->i", *[W.astype(np.float32), inverse(x)], V),
    "an eigenvector": lambda x: anp.linalg.eigh(symmetric(x))[1][:, 0],
    "eigenvectors": lambda x: anp.ravel(anp.linalg.eigh(symmetric(x), "U")[1][:, 2:4] ** 2),
    "a row of eigenvectors": lambda x: anp.linalg.eigh(symmetric(x))[1][3] ** 2,
    "elements of eigenvectors": lambda x: anp.diag(anp.linalg.eigh(symmetric(x))[1]) ** 2,
    "real parts of the diagonal": lambda x: anp.real(anp.diag(anp.linalg.inv(EYE + 1j * W * x))),
    "squares of a complex row": lambda x: anp.abs(anp.linalg.inv(EYE + 1j * W * x)[2]) ** 2,
    "the diagonal in single precision": lambda x: anp.diag((W.astype(np.float32) * x) @ V),
    "the inverse of a complex matrix": lambda x: anp.imag(anp.linalg.inv(EYE + 1j * W * x) @ x),
}

IN_ANOTHER_ORDER = {
    "all elements in another order": lambda x: solved(mixed(V @ (W * x))),
    "a product in another order": lambda x: solved(mixed((V @ (W * x)) @ V)),
}
"""What depends on indices, which are no part of a tape's structure."""


def facts_with_ranks(tape):
    return with_ranks(facts_of(tape))


def compiled(fun, x, *, adjoint_mode=True):
    """Compile a whole recording into array steps."""
    tape = record(fun, x)
    facts = facts_with_ranks(tape)
    (chunk,) = cut_into_chunks(graph_of(tape, facts), ())
    return tape, compile_array_sweep(tape, facts, chunk, chunk.m, adjoint_mode=adjoint_mode, identity=True)


@pytest.mark.parametrize("name", PROGRAMS | IN_ANOTHER_ORDER)
@pytest.mark.usefixtures("always_factored")
def test_factored_adjoints_are_those_of_autograd(name):
    """For the identity, in blocks of it, and for other directions."""
    fun = (PROGRAMS | IN_ANOTHER_ORDER)[name]
    tape, sweep = compiled(fun, X)
    want = jacobian(fun)(X).reshape(-1, X.size)
    scale = np.abs(want).max()
    others = RANDOM.standard_normal((3, len(want)))
    np.testing.assert_allclose(sweep.run(tape, None), want, rtol=0.0, atol=1e-12 * scale)
    np.testing.assert_allclose(sweep.run(tape, None, 5), want, rtol=0.0, atol=1e-12 * scale)
    np.testing.assert_allclose(sweep.run(tape, others), others @ want, rtol=0.0, atol=1e-11 * scale)


@pytest.mark.usefixtures("always_factored")
def test_rules_that_do_not_cover_a_call_get_all_elements():
    """An outer product takes matrices for vectors, which autograd does not differentiate."""
    tape, sweep = compiled(lambda x: anp.outer(anp.reshape(x, (3, 4)), anp.sin(x)) @ B, X)
    want = jacobian(lambda x: anp.outer(x, anp.sin(x)) @ B)(X)
    np.testing.assert_allclose(sweep.run(tape, None), want, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS | IN_ANOTHER_ORDER)
def test_plans_of_factored_adjoints_are_right(monkeypatch, name):
    factor_matrices_of(monkeypatch, thinner=1)
    fun = (PROGRAMS | IN_ANOTHER_ORDER)[name]
    want = jacobian(fun)(X)
    for method in ("auto", "adjoint"):
        J = parallel_jacobian(fun, method=method)(X)
        assert J.dtype == want.dtype
        np.testing.assert_allclose(J, want, rtol=0.0, atol=1e-12 * np.abs(want).max())


def arriving(monkeypatch, fun, x=X):
    """Run an adjoint sweep; return the tape and the ranks of adjoints that arrive factored, by entry."""
    tape, sweep = compiled(fun, x)
    ranks = {}
    for kind in (MapStep, ClusterStep, BulkStep):

        def adjoint(step, tape, A, seeds, original=kind.adjoint):
            if isinstance(A, LowRank):
                ranks[step.index] = ranks.get(step.index, 0) + A.factors.rank  # of parts in several windows
            original(step, tape, A, seeds)

        monkeypatch.setattr(kind, "adjoint", adjoint)
    sweep.run(tape, None)
    monkeypatch.undo()
    return tape, ranks


@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_are_known_before(monkeypatch, name):
    """What is said of a tape's structure is what arrives at steps."""
    factor_matrices_of(monkeypatch, thinner=1)
    tape = record(PROGRAMS[name], X)
    known = facts_with_ranks(tape).ranks
    _, found = arriving(monkeypatch, PROGRAMS[name])
    _, sweep = compiled(PROGRAMS[name], X)
    predicted = {step.index: known[step.index] for step in sweep.steps if step.index in known}
    assert predicted.items() <= found.items()


def labels_of(monkeypatch, fun):
    """List the operations whose adjoints arrive factored, the last one first."""
    factor_matrices_of(monkeypatch, thinner=1)
    tape, ranks = arriving(monkeypatch, fun)
    return [tape.label(index) for index in sorted(ranks, reverse=True)]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("assembled by products", ["add", "matmul", "multiply"]),
        ("einsum", ["add", "einsum"]),
        ("an inverse", ["inv", "add"]),
        ("the Hessian of a determinant", ["inv", "swapaxes", "multiply", "add", "diag"]),
        ("the diagonal of an inverse", ["inv", "add"]),
        ("one element many times", ["inv", "add"]),
        ("a row of an inverse", ["inv", "add"]),
        ("sums of rows", ["matmul", "inv", "add"]),
        ("quadratic forms", ["inv", "add"]),
        ("a matrix in matrices", []),
        ("an eigenvector", ["eigenvectors"]),
        ("a part", ["add", "getitem", "multiply"]),
        ("blocks", ["add", "concatenate", "concatenate", "multiply", "concatenate", "multiply"]),
        ("the identity minus a product", ["subtract", "matmul", "multiply"]),
        ("a product and another matrix", ["matmul", "multiply"]),
        ("another shape", []),
        ("repeated rows", ["add", "getitem", "getitem", "multiply"]),
        ("rolled", []),
        ("rolled along an axis", ["matmul", "multiply", "roll"]),
    ],
)
def test_adjoints_stay_factored(monkeypatch, name, labels):
    assert sorted(labels_of(monkeypatch, PROGRAMS[name])) == sorted(labels)


@pytest.mark.parametrize(("name", "products"), [*zip(IN_ANOTHER_ORDER, (1, 2), strict=True)])
def test_what_is_written_out_is_handed_on_so(monkeypatch, name, products):
    """Sizes of matrices would let their adjoints stay factored, but the elements do not move in rows."""
    factor_matrices_of(monkeypatch, thinner=1)
    tape = record(IN_ANOTHER_ORDER[name], X)
    facts = facts_with_ranks(tape)
    (chunk,) = cut_into_chunks(graph_of(tape, facts), ())
    steps = compile_array_sweep(tape, facts, chunk, N, adjoint_mode=True).steps
    found = factored_sizes(tape, facts, steps, worth_factoring(facts, chunk, N))
    may_be = sorted(tape.label(index) for index in facts.ranks)
    assert may_be == sorted(["add", "getitem", "multiply", *["matmul"] * products])
    assert [tape.label(index) for index in found] == ["add"]


def test_sums_of_factors_of_high_rank_are_written_out(monkeypatch):
    factor_matrices_of(monkeypatch, thinner=1)

    def repeated(x):
        K = (W * x) @ V
        for _ in range(8):
            x = anp.tanh(K @ x)
        return x

    tape, ranks = arriving(monkeypatch, repeated)
    assert not ranks
    assert len(tape) == 3 + 16


def inside(x):
    """Some rows and columns of a matrix, and infinite derivatives beside zeros."""
    y = ((W * x)[:, :10]) @ B[:10]
    return anp.sqrt(y - y[0]) + ((V * x).T @ anp.sqrt(y - y[0]))[0]


@pytest.mark.usefixtures("always_factored")
def test_what_does_not_move_is_zero_beside_infinities():
    with np.errstate(all="ignore"):
        want = jacobian(inside)(X)
        tape, sweep = compiled(inside, X)
        found = sweep.run(tape, None)
    assert not (np.isnan(found) & ~np.isnan(want)).any()
    np.testing.assert_allclose(found[~np.isnan(found)], want[~np.isnan(found)])


@pytest.mark.parametrize(("k", "factored"), [(7, 0), (8, 2)])
def test_few_directions_are_not_factored(monkeypatch, k, factored):
    wide = RANDOM.uniform(-1.0, 1.0, (80, 80)) / 80
    x = np.linspace(0.1, 1.0, 80)
    _, ranks = arriving(monkeypatch, lambda x: wide[:k] @ (((wide * x) @ wide) @ x), x)
    assert len(ranks) == factored


def windows(n):
    """A matrix that products of several windows of the output read."""
    table = RANDOM.uniform(-1.0, 1.0, (n, n)) / n
    x = np.linspace(0.1, 0.3, n)
    return lambda x: anp.concatenate([((table * x) @ table) @ row for row in table[:5]]), x


def stiffness(n):
    """A matrix of many parts: elements, their stiffness, forces."""
    D = np.eye(n + 1, n) - np.eye(n + 1, n, -1)
    return lambda k: anp.linalg.solve(D.T @ (anp.exp(k)[:, None] * D), np.ones(n)), np.linspace(
        0.0, 0.3, n + 1
    )


def implicit(n):
    """A matrix of many parts that the steps of a time integration solve with, each with outputs."""
    D = np.eye(n + 1, n) - np.eye(n + 1, n, -1)

    def states(k):
        matrix, state, found = D.T @ (anp.exp(k)[:, None] * D) + np.eye(n), np.ones(n), []
        for _ in range(4):
            state = anp.linalg.solve(matrix, state)
            found.append(state[: n // 4])
        return anp.concatenate(found)

    return states, np.linspace(0.0, 0.3, n + 1)


def inverted(n):
    """The same with the inverse of the matrix."""
    D = np.eye(n + 1, n) - np.eye(n + 1, n, -1)

    def states(k):
        inverse = anp.linalg.inv(D.T @ (anp.exp(k)[:, None] * D) + np.eye(n))
        state = inverse @ np.ones(n)
        return anp.concatenate([state[: n // 2], (inverse @ anp.tanh(state))[: n // 2]])

    return states, np.linspace(0.0, 0.3, n + 1)


def diagonal(n):
    """A matrix with parameters that the side of the system has as well."""
    table = RANDOM.uniform(-1.0, 1.0, (n, n)) / n
    return lambda x: anp.linalg.solve(anp.diag(x) + table, x), np.linspace(1.0, 2.0, n)


def determinant(n):
    """A Hessian that needs the diagonal of an inverse: adjoints begin with one element each."""
    table = np.eye(n) + RANDOM.uniform(-1.0, 1.0, (n, n)) / n
    return grad(lambda x: anp.linalg.slogdet(table + anp.diag(x))[1]), np.linspace(1.0, 2.0, n)


def sums_of_rows(n):
    """Adjoints begin with one row each."""
    table = RANDOM.uniform(-1.0, 1.0, (n, n))
    return lambda x: anp.sum(table @ anp.linalg.inv(table.T @ (x[:, None] * table)) * table, axis=1), (
        np.linspace(1.0, 2.0, n)
    )


def rolled(n):
    """A matrix whose elements move otherwise than in rows and columns."""
    table = RANDOM.uniform(-1.0, 1.0, (n, n)) / n
    return lambda x: anp.roll((table * x) @ table, 3) @ x, np.linspace(0.1, 0.3, n)


def reordered(n):
    """A product whose elements are read in another order: its adjoints are written out."""
    table = RANDOM.uniform(-1.0, 1.0, (n, n)) / n
    return lambda x: anp.linalg.solve(np.eye(n) + mixed((table * x) @ table), np.ones(n)), np.linspace(
        0.1, 0.3, n
    )


def masked(n):
    """A matrix whose adjoints are multiplied by another one: they are written out."""
    mask = RANDOM.uniform(0.0, 1.0, (n, n)) / n
    return lambda x: anp.linalg.solve(np.eye(n) + mask * ((mask * x) @ mask), np.ones(n)), np.linspace(
        0.1, 0.3, n
    )


@pytest.mark.parametrize(
    ("program", "most"),
    [
        (stiffness(80), 0.1 + 1 / 80),  # and the factors of one matrix
        (implicit(80), 0.6),
        (inverted(80), 0.4),
        (diagonal(80), 0.1 + 1 / 80),
        (masked(80), 4.0),
        (windows(80), 20.0),
        (determinant(80), 0.2),
        (sums_of_rows(80), 0.3),
        (rolled(80), 4.0),
        (reordered(80), 4.0),
    ],
)
def test_predicted_peaks_are_those_measured(program, most):
    """At most so many adjoints of the whole matrix are alive at a time."""
    fun, x = program
    jac = parallel_jacobian(fun, method="adjoint", machines=1)
    tape = jac.tape(x)
    jac.of_tape(tape)
    peak = traced_peak(lambda: jac.of_tape(tape))
    assert peak / 1.5 < jac.plan(x).peak_bytes < most * 8 * 80**3


def test_adjoints_of_a_solution_are_spared_most_of_their_work():
    fun, x = stiffness(60)
    plan = parallel_jacobian(fun, cost="fma").plan(x)
    (link,) = plan.chain.links
    assert link.tangent_cost == link.edges > 8 * link.adjoint_cost
    tape = record(fun, x)
    facts = facts_with_ranks(tape)
    found = spared(facts)
    assert [tape.label(i) for i in np.flatnonzero(found.whole)] == ["multiply", "matmul"]
    assert (found.edges <= facts.edges).all()
    assert (work_table(facts).lines >= 0.0).all()


@pytest.mark.parametrize(
    "matrix",
    [
        lambda k: PARTS @ k,
        lambda k: anp.tensordot(PARTS, k, 1),
        lambda k: anp.einsum("ijp,p->ij", PARTS, k),
        lambda k: anp.dot(k, np.moveaxis(PARTS, 2, 1)),
    ],
)
def test_factors_of_a_sum_of_matrices_meet_all_of_them(matrix):
    """They spare the adjoint of the sum, not the products with its summands."""

    def cost(matrix):
        jac = parallel_jacobian(
            lambda k: anp.linalg.solve(9.0 * np.eye(30) + matrix(k), np.ones(30)), cost="fma"
        )
        return jac.plan(np.linspace(0.1, 0.2, 50)).chain.links[0].adjoint_cost

    written_out = cost(lambda k: anp.reshape(PARTS.reshape(900, 50) @ k, (30, 30)))
    assert PARTS.size < cost(matrix) < 1.1 * written_out


PARTS = RANDOM.uniform(-0.1, 0.1, (30, 30, 50))
SCALED = {
    "a constant": lambda x: 0.3 * anp.diag(x),
    "an array of one": lambda x: anp.diag(x) * np.array([[0.3]]),
    "a part of the input": lambda x: x[0] * anp.diag(x),
    "divided": lambda x: anp.diag(x) / 3.0,
    "by functions": lambda x: anp.divide(anp.multiply(2, anp.diag(x)), x[1]),
}


@pytest.mark.parametrize("name", SCALED)
def test_scaled_matrices_keep_their_adjoints_factored(name):
    table, x = RANDOM.uniform(-1.0, 1.0, (60, 60)) / 60, np.linspace(1.0, 2.0, 60)

    def jacobian_with(part):
        return parallel_jacobian(lambda x: anp.linalg.solve(np.eye(60) + table + part(x), x), cost="fma")

    ours, unscaled = jacobian_with(SCALED[name]), jacobian_with(anp.diag)
    cost, cost_unscaled = (jac.plan(x).chain.links[0].adjoint_cost for jac in (ours, unscaled))
    assert cost < 1.1 * cost_unscaled
    np.testing.assert_allclose(ours(x), jacobian(ours.__wrapped__)(x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "scaled",
    [lambda x: anp.diag(x) * np.ones(60), lambda x: 1.0 / (2.0 + anp.diag(x)), lambda x: x * anp.diag(x)],
)
def test_matrices_that_are_multiplied_by_others_do_not(scaled):
    x = np.linspace(1.0, 2.0, 60)
    chain = parallel_jacobian(lambda x: anp.linalg.solve(np.eye(60) + scaled(x), x), cost="fma").plan(x).chain
    plain = (
        parallel_jacobian(lambda x: anp.linalg.solve(np.eye(60) + anp.diag(x), x), cost="fma").plan(x).chain
    )
    assert chain.links[0].adjoint_cost > 1.3 * plain.links[0].adjoint_cost


def test_small_matrices_are_not_factored(monkeypatch):
    assert arriving(monkeypatch, PROGRAMS["an inverse"])[1] == {}


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_moved_factors_are_moved_matrices(data):
    """By any index into a matrix, with the parts that move as a whole and those that do not."""
    rows, columns, rank = (data.draw(st.integers(1, 5)) for _ in range(3))
    places = np.arange(rows * columns).reshape(rows, columns)
    of_rows, of_columns = (
        data.draw(
            st.slices(n).map(lambda s, n=n: np.arange(n)[s]) | st.lists(st.integers(0, n - 1)).map(np.intp)
        )
        for n in (rows, columns)
    )
    sources = places[np.ix_(of_rows, of_columns)]
    if data.draw(st.booleans()):
        sources = sources.T
    if not sources.size:
        return
    k = data.draw(st.integers(1, 3))
    factors = Factors(
        RANDOM.standard_normal((k, rank, len(sources))), RANDOM.standard_normal((1, rank, sources.shape[1]))
    )
    moves = IndexMap.of_sources(sources.ravel(), places.size)
    want = moves.scatter(factors.dense().reshape(k, -1)).reshape(k, rows, columns)
    found = moved_back(factors, moves, (rows, columns))
    if found is not None:
        np.testing.assert_allclose(found.dense() if isinstance(found, Factors) else found, want, atol=1e-14)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_added_factors_are_added_matrices(data):
    def drawn():
        rank, count = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
        sides = [RANDOM.standard_normal((data.draw(st.sampled_from([1, count])), rank, n)) for n in (80, 60)]
        return LowRank(data.draw(st.integers(0, 2)), Factors(*sides))

    def written(batch):
        batch, rows = batch.dense(), np.zeros((6, 80, 60))
        rows[batch.start : batch.stop] = batch.rows
        return rows

    parts = [drawn() for _ in range(data.draw(st.integers(2, 12)))]
    found = functools.reduce(accumulate, parts)
    same = len({(part.start, part.stop, part.shared_side) for part in parts}) == 1
    is_thin = sum(part.factors.rank for part in parts) <= 8
    assert isinstance(found, LowRank) is (same and is_thin)
    np.testing.assert_allclose(written(found), sum(map(written, parts)), atol=1e-13)


def test_many_products_are_multiplied_out_once_in_a_while():
    """Their factors take no more memory than two arrays of the directions."""

    def part(start):
        return LowRank(start, Factors(RANDOM.standard_normal((9 - start, 1, 40)), np.ones((1, 1, 30))))

    found, most = accumulate(part(8), part(7)), 0
    for start in (6, 5, 4, 3, 2, 1, 0) * 8:
        found = accumulate(found, part(start))
        most = max(most, len(found.parts))
    assert most == 40 * 30 // (40 + 30)
    assert 0 < len(found.parts) < most
    assert found.written is not None
    np.testing.assert_array_equal(found.dense().rows, found.dense().rows)


@pytest.mark.parametrize("shared", [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("last", [1.0, np.inf])
def test_thin_sums_of_several_windows_stay_factored(shared, last):
    sides = [
        (RANDOM.standard_normal((2, 1, 80)), np.full((1 if one else 2, 1, 60), x))
        for one, x in zip(shared, (1.0, last), strict=True)
    ]
    found = accumulate(*(LowRank(start, Factors(*pair)) for start, pair in enumerate(sides)))
    apart = found.apart()
    assert all(isinstance(batch, LowRank) for batch in apart)
    assert len(apart) == (1 if shared == (True, True) and np.isfinite(last) else 2)
    np.testing.assert_array_equal(functools.reduce(accumulate, apart).dense().rows, found.dense().rows)
    many = accumulate(found, LowRank(0, Factors(np.ones((3, 8, 80)), np.ones((3, 8, 60)))))
    (dense,) = many.apart()
    np.testing.assert_array_equal(dense.rows, many.dense().rows)


@pytest.mark.parametrize("order", ["TAT", "TA", "ATTA"])
@pytest.mark.parametrize("output", ["at each step", "in the end"])
def test_products_with_a_matrix_and_its_transpose_share_different_sides(order, output):
    """If their factors were joined, the shared sides would be written out for all directions."""
    stack, given = RANDOM.standard_normal((30, 160, 160)) / 160, 2.0 * np.eye(160)

    def fun(p):
        matrix, state, found = given + anp.tensordot(anp.sin(p), stack, 1), np.ones(160), []
        for one in order:
            state = anp.tanh((matrix if one == "A" else matrix.T) @ state)
            found.append(state[:40])
        return anp.concatenate(found) if output == "at each step" else state

    p = RANDOM.standard_normal(30)
    jac = parallel_jacobian(fun, machines=1, method="adjoint")
    tape, plan = jac.tape(p), jac.plan(p)
    want = jac.of_tape(tape)
    np.testing.assert_allclose(want, jacobian(fun)(p), rtol=1e-10, atol=1e-12)
    peak = traced_peak(lambda: jac.of_tape(tape))
    assert plan.peak_bytes / 1.5 < peak < 1.05 * plan.peak_bytes
    limit = plan.sweeps[0].least_bytes
    limited = parallel_jacobian(fun, machines=1, method="adjoint", memory_limit=limit)
    np.testing.assert_allclose(limited(p), want, rtol=1e-12, atol=1e-14)
    assert traced_peak(lambda: limited.of_tape(tape)) - want.nbytes < 1.1 * limit


def test_infinite_factors_stay_in_their_directions():
    finite, infinite = np.ones((1, 1, 60)), np.full((1, 1, 60), np.inf)
    parts = [
        LowRank(0, Factors(np.ones((2, 1, 80)), finite)),
        LowRank(1, Factors(np.ones((2, 1, 80)), infinite)),
    ]
    rows = accumulate(*parts).dense().rows
    assert (rows[0] == 1.0).all()
    assert np.isinf(rows[1:]).all()


@pytest.mark.parametrize("program", [stiffness(80), masked(80), windows(80), rolled(80), reordered(80)])
def test_memory_limits_hold(program):
    fun, x = program
    jac = parallel_jacobian(fun, method="adjoint", machines=1)
    limit = jac.plan(x).sweeps[0].fixed_bytes + 10 * 8 * 80**2
    jac = parallel_jacobian(fun, method="adjoint", machines=1, memory_limit=limit)
    tape = jac.tape(x)
    result = jac.of_tape(tape)
    peak = traced_peak(lambda: jac.of_tape(tape))
    assert peak < result.nbytes + 1.5 * limit


@pytest.mark.parametrize("read", [two_windows, lambda K, x: many_windows(K), lambda K, x: K @ (K @ x)])
def test_no_more_edges_are_spared_than_there_are(monkeypatch, read):
    factor_matrices_of(monkeypatch, thinner=1)
    tape = record(lambda x: read(scaled(x), x), X)
    facts = facts_with_ranks(tape)
    assert (spared(facts).edges <= facts.edges).all()
    table = work_table(facts)
    assert (table.lines[:, facts.structure.inputs :] >= 0.0).all()
    plan = parallel_jacobian(lambda x: read(scaled(x), x)).plan(X)
    assert plan.seconds > 0.0


def test_adjoints_of_inputs_are_written_out(monkeypatch):
    """In the end they are part of the Jacobian, whatever they are made of."""
    factor_matrices_of(monkeypatch, thinner=1)
    tape = record(lambda M: anp.tanh(M @ B), W)
    assert not facts_with_ranks(tape).ranks


def recurrent(K, step=anp.tanh):
    state = X
    for row in V[:4]:
        state = step(K @ state + row)
    return state


def waves(K):
    return anp.abs(K @ anp.exp(1j * (K @ X)))


JOINED = {
    "of a loop": recurrent,
    "of parameters": lambda p: recurrent(anp.reshape(p, (N, N))),
    "with the identity": lambda K: recurrent(K + EYE),
    "scaled": lambda K: recurrent(2.0 * K),
    "from both sides": lambda K: anp.tanh(anp.tanh(K @ X) @ K),
    "dot and inner products": lambda K: anp.inner(K, anp.tanh(anp.dot(K, X))),
    "of thin matrices": lambda K: anp.ravel(K @ anp.tanh(K @ THIN)),
    "of two windows": lambda K: anp.concatenate([(K @ B)[:3], anp.tanh(K @ anp.sin(K @ X))[:4]]),
    "one row": lambda K: anp.sum(recurrent(K)),
    "infinite": lambda K: recurrent(K, step=lambda x: x + np.where(np.arange(N) == 3, np.inf, 0.0)),
    "complex operands": lambda K: anp.real(K @ anp.exp(1j * (K @ X))),
    "complex": lambda K: waves(K * (1 + 2j)),
    "read otherwise, too": lambda K: recurrent(K) + anp.sum(K**2),
    "transposed": lambda K: recurrent(K) * anp.tanh(K.T @ X),
    "solved": lambda K: solved(K, solved(K)),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("limit", [None, 40_000])
@pytest.mark.parametrize("name", JOINED)
@pytest.mark.usefixtures("always_factored")
def test_adjoints_of_a_matrix_that_several_products_read(name, limit):
    fun, x = JOINED[name], W.ravel() if name == "of parameters" else W
    found = parallel_jacobian(fun, method="adjoint", memory_limit=limit)(x)
    np.testing.assert_allclose(found, jacobian(fun)(x), rtol=1e-10, atol=1e-12)


def test_products_that_read_one_matrix_hand_factors(monkeypatch):
    factor_matrices_of(monkeypatch, thinner=0)
    for name, expected in (
        ("of a loop", {0}),
        ("of parameters", {1}),
        ("complex", set()),
        ("transposed", set()),
    ):
        fun, x = JOINED[name], W.ravel() if name == "of parameters" else W
        tape = record(fun, x)
        facts = facts_of(tape)
        (chunk,) = cut_into_chunks(graph_of(tape, facts), ())
        sweep = compile_array_sweep(tape, facts, chunk, N, adjoint_mode=True)
        products = [step for step in sweep.steps if isinstance(step, BulkStep)]
        kept = {tape[step.index].parents[i] for step in products for i in step.factored}
        assert kept == expected


@pytest.mark.parametrize(("size", "count"), [(100, 2), (40, 10)])
@pytest.mark.parametrize(
    "matrix_of",
    [
        lambda w: w,
        lambda w: anp.real(anp.fft.fft(w)),
        lambda w: anp.abs((1.0 + 1.0j * np.eye(len(w))) @ w),
    ],
)
def test_real_matrices_in_complex_products_get_real_parts(matrix_of, size, count):
    """Products of factors are complex here: what made the matrix must not get their imaginary parts."""
    vectors = RANDOM.standard_normal((count, size)) + 1.0j * RANDOM.standard_normal((count, size))

    def fun(w):
        matrix = matrix_of(w)
        return anp.concatenate([anp.abs(matrix @ vector)[:4] for vector in vectors])

    w = RANDOM.standard_normal((size, size))
    jac = parallel_jacobian(fun, method="adjoint", machines=1)
    expected = jacobian(fun)(w)
    np.testing.assert_allclose(jac(w), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    assert execute(jac.plan(w), jac.tape(w)).dtype == np.float64
