"""Local structures of sums and products equal autograd's own derivative."""

import tracemalloc

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import elementwise_grad, grad, jacobian
from autograd.core import VSpace
from autograd.extend import defjvp, defvjp, primitive
from autograd.numpy.numpy_vjps import dot_adjoint_0, dot_adjoint_1, tensordot_adjoint_0, tensordot_adjoint_1
from autograd.scipy.linalg import solve_banded, solve_triangular
from autograd.scipy.signal import convolve
from autograd.scipy.special import logsumexp
from autograd.util import func
from sweep_forms import forced

from tapesplit import parallel_jacobian, record
from tapesplit.rules import count_slices, find_rule, local_structures, loop_adjoint, slices_of
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps.compression import CompressedSweep
from tapesplit.sweeps.scalar_sweep import ScalarSweep

A, B, V, W = (np.random.default_rng(i).standard_normal(s) for i, s in enumerate([(3, 4), (4, 2), (4,), (3,)]))
CALLS = {
    "sum": anp.sum,
    "sum axis": lambda x: anp.sum(x, axis=1),
    "sum keepdims": lambda x: anp.sum(x, axis=-2, keepdims=True),
    "sum axes": lambda x: anp.sum(x, axis=(0, 1)),
    "mean": lambda x: anp.mean(x, axis=0),
    "dot matrix": lambda x: anp.dot(x, B),
    "dot vector": lambda x: anp.dot(x, V),
    "dot left": lambda x: anp.dot(W, x),
    "dot itself": lambda x: anp.dot(x, x.T),
    "dot number": lambda x: anp.dot(x, 2.0),
    "matmul list": lambda x: x @ [1.0, -2.0, 0.5, 3.0],
    "dot integers": lambda x: anp.dot(x, np.arange(4)),
    "matmul": lambda x: x @ B,
    "matmul vector": lambda x: W @ x,
    "inner": lambda x: anp.inner(x, A),
    "tensordot": lambda x: anp.tensordot(x, A, axes=2),
    "pad": lambda x: anp.pad(x, 1, mode="constant"),
    "pad widths": lambda x: anp.pad(x, ((1, 0), (0, 2)), "constant", constant_values=2.0),
    "tensordot axes": lambda x: anp.tensordot(x, A, axes=([0], [0])),
    "outer": lambda x: anp.outer(x[0], x[1]),
    "differences": anp.diff,
    "differences along an axis": lambda x: anp.diff(x, axis=0),
    "second differences": lambda x: anp.diff(x, 2),
    "second differences along an axis": lambda x: anp.diff(x, n=2, axis=0),
    "third differences": lambda x: anp.diff(x, 3, -1),
    "stacks": lambda x: (x[:2, None, :] * np.ones((2, 3, 1))) @ STACK,
    "stacks by a matrix": lambda x: anp.reshape(x, (2, 2, 3)) @ STACK[0, :3],
    "matrix by stacks": lambda x: x @ STACK,
    "stacks by a vector": lambda x: anp.reshape(x, (2, 1, 1, 2, 3)) @ W,
    "vector by stacks": lambda x: x[0] @ STACK,
    "stacks that broadcast": lambda x: anp.reshape(x, (3, 1, 1, 4)) @ STACK,
    "stacks by themselves": lambda x: anp.reshape(x, (3, 2, 2)) @ anp.reshape(x, (3, 2, 2)),
    "einsum": lambda x: anp.einsum("ij,jk->ki", x, B),
    "einsum of slices": lambda x: anp.einsum("ij,ij->i", x, anp.cos(x)),
    "einsum with a sum": lambda x: anp.einsum("ij,kl->lj", x, B),
    "einsum of implicit form": lambda x: anp.einsum("ij,jk", x, B),
    "einsum of three": lambda x: anp.einsum("ij,jk,k->i", x, B, anp.cos(B[0])),
    "einsum of three with itself": lambda x: anp.einsum("ij,kj,kl->il", x, x, anp.sin(x)),
    "einsum of finite elements": lambda x: anp.einsum("e,ei,ij,ej->e", x[:, 0], x, B, x @ B),
    "einsum of four": lambda x: anp.einsum("ij,ij,ij,ij->j", x, A, x, anp.exp(x)),
    "einsum of one, transposed": lambda x: anp.einsum("ij->ji", x),
    "einsum of one, summed": lambda x: anp.einsum("ij->j", x),
    "einsum of one, all": lambda x: anp.einsum("ij->", x),
    "einsum by lists": lambda x: anp.einsum(x, [0, 1], B, [1, 2], anp.cos(x), [0, 1], [2, 0]),
    "einsum that is optimized": lambda x: anp.einsum("ij,jk,kl->il", x, B, B.T, optimize=True),
    "Kronecker": lambda x: anp.kron(x[:1, :3], B),
    "Kronecker of vectors": lambda x: anp.kron(x[0], anp.cos(x[1])),
    "Kronecker with itself": lambda x: anp.kron(x[:2, :2], x[1:, 2:]),
    "gradient": lambda x: anp.gradient(anp.ravel(x)),
    "gradient along an axis": lambda x: anp.gradient(x, axis=1),
    "trace": anp.trace,
    "trace beside": lambda x: anp.trace(x @ B, 1),
    "ramp": lambda x: anp.linspace(x[0, 0], x[1, 1], 7),
    "ramp from a constant": lambda x: anp.linspace(0.5, x[1, 1], num=4),
    "convolution": lambda x: convolve(x, anp.cos(B)),
    "valid convolution": lambda x: convolve(x, B[:2, :1], mode="valid"),
    "convolution in place": lambda x: convolve(x, A[:2, :3], mode="same"),
    "convolution with itself": lambda x: convolve(x[0], anp.sin(x[1])),
    "valid convolution by a longer one": lambda x: convolve(x[0, :2], B[:, 0], mode="valid"),
    "convolution of rows": lambda x: convolve(x, anp.cos(B.T), axes=([1], [1])),
    "convolution of rows in place": lambda x: convolve(B.T, x, axes=([1], [1]), mode="same"),
    "convolution of rows by longer ones": lambda x: convolve(x[:, :2], A, [[1], [1]], mode="valid"),
    "convolution along the first axes": lambda x: convolve(x, STACK),
    "convolution of columns by rows": lambda x: convolve(x, anp.sin(x), axes=([0], [1])),
    "convolution of channels": lambda x: convolve(anp.reshape(x, (3, 2, 2)), STACK, *CHANNELS),
    "valid convolution by channels": lambda x: convolve(
        STACK, anp.reshape(x, (2, 2, 3)), ([1], [2]), ([0, 2], [1, 0]), mode="valid"
    ),
    "convolution of channels in place": lambda x: convolve(
        anp.sin(anp.reshape(x, (2, 6))), anp.reshape(x, (2, 6))[:, :4], ([1], [1]), ([0], [0]), mode="same"
    ),
    "sums of channels only": lambda x: convolve(x, A, ([], []), ([1], [1])),
    "einsum with an ellipsis": lambda x: anp.einsum("i...,i->...", x, W),
    "einsum that broadcasts": lambda x: anp.einsum("ij,ij->ij", x[:, :1], A),
    "adjoint of a left factor": lambda x: dot_adjoint_0(B, anp.sin(x) @ B, anp.metadata(A), anp.metadata(B)),
    "adjoint of a right factor": lambda x: dot_adjoint_1(x, anp.sin(x) @ B, anp.metadata(A), anp.metadata(B)),
    "adjoint of a left tensor": lambda x: tensordot_adjoint_0(x, anp.sin(x) @ A.T, ([1], [1]), 2, 2),
    "adjoint of a right tensor": lambda x: tensordot_adjoint_1(x, anp.sin(x) @ B, 1, 2, 2),
}
STACK = np.random.default_rng(4).standard_normal((2, 4, 2))
CHANNELS = ([2], [2]), ([1], [0])


@pytest.mark.parametrize("name", CALLS)
def test_edges_of_a_call_are_its_derivative(name):
    tape = record(CALLS[name], A)
    entry = tape[tape.output]
    find_rule(entry.primitive)  # loads those of autograd.scipy
    identity = np.eye(np.size(entry.value)).reshape(-1, *np.shape(entry.value))
    structures = local_structures(entry)
    for argnum, local, expected in zip(entry.argnums, structures, loop_adjoint(identity, entry), strict=True):
        jacobian_of_call = np.zeros((len(identity), np.size(entry.args[argnum])))
        factor = local.factor
        for number, positions in local.factors:
            factor = factor * np.ravel(entry.args[number])[positions]
        np.add.at(jacobian_of_call, (local.rows, local.columns), factor)
        np.testing.assert_allclose(jacobian_of_call, expected.reshape(jacobian_of_call.shape), atol=1e-14)
        for row in range(len(identity)):
            assert sorted(local.rank[local.rows == row]) == list(range(np.sum(local.rows == row)))


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", CALLS)
def test_scalar_sweeps_take_sums_and_products(name, method):
    def f(x):
        y = CALLS[name](anp.sin(x)) * 2.0
        for _ in range(40):  # enough small operations for a scalar sweep
            y = anp.tanh(y[0] + y) if anp.ndim(y) else anp.tanh(y)
        return y

    jac = parallel_jacobian(f, method=method)
    expected = jacobian(f)(A)
    np.testing.assert_allclose(jac(A), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert isinstance(jac.plan(A).sweeps[0], ScalarSweep)


def test_products_with_partly_constant_operands_have_no_coefficients_for_the_constants():
    def f(q):
        rotation = anp.array(
            [[anp.cos(q[0]), -anp.sin(q[0]), 0.0], [anp.sin(q[0]), anp.cos(q[0]), 0.0], [0.0, 0.0, 1.0]]
        )
        return anp.dot(anp.dot(rotation, rotation), q)

    q = np.array([0.3, -0.2, 0.5])
    for method in ("tangent", "adjoint"):
        np.testing.assert_allclose(parallel_jacobian(f, method=method)(q), jacobian(f)(q), rtol=1e-14)


@pytest.mark.parametrize(
    ("fun", "form"),
    [
        (lambda x: anp.real(anp.dot(x, A.T * 1j) * 1j), "local"),
        (lambda x: anp.einsum("ij,jk,kl->il", x, B, B.T), "local"),
        (lambda x: anp.einsum("ii->", x[:, :3]), "block"),
        (lambda x: anp.outer(x[:2], x[0]), "block"),
        (lambda x: anp.diff(x, 2), "local"),
        (lambda x: anp.diff(x.ravel(), 9), "block"),
        (lambda x: anp.einsum("ii,ij->j", x[:, :3], A), "block"),
        (lambda x: anp.einsum(x, [0, 1], B, [1, 2]), "local"),
        (lambda x: anp.einsum("ijk,j,k->i", np.ones((4, 12, 12)), x.ravel(), x.ravel()), "block"),
        (lambda x: x @ B, "local"),
        (lambda x: x @ np.ones((4, 5000)), "dense"),
        (lambda x: x @ np.ones((4, 50_000)), "none"),
        (lambda x: anp.einsum("ij,ij->ij", x[:1], np.ones((3000, 4))), "local"),
    ],
)
def test_form_of_calls_in_scalar_sweeps(fun, form):
    tape = record(fun, A)
    facts = facts_of(tape)
    products = {"dot", "matmul", "einsum", "outer", "diff"}
    (product,) = (i for i in range(len(tape)) if tape.label(i) in products)
    assert facts.scalar[product] == (form != "none")
    assert facts.scalar_apart[product] == (form not in {"dense", "none"})
    assert (facts.blocks[product] > 0) == (form == "block")


def two_derivatives(u):
    slope = elementwise_grad(u)
    return elementwise_grad(lambda x: slope(x) * x)


@pytest.mark.parametrize(
    "fun",
    [
        grad(lambda x: anp.sum(x) + anp.sum(anp.sin(x))),
        two_derivatives(lambda x: anp.sin(x) * anp.exp(x) * x),
        grad(lambda x: anp.sum(anp.real(anp.exp(1j * x) * (1j * x) * anp.conj(1j * x)))),
    ],
)
def test_sums_of_adjoints_are_elementwise(fun):
    tape = record(fun, np.linspace(0.1, 1.0, 20_000))
    assert not {func(VSpace.add), func(VSpace.mut_add)} & {entry.primitive for entry in tape}
    assert facts_of(tape).scalar[1:].all()


@primitive
def tripled(x):
    return 3.0 * x


defvjp(tripled, lambda ans, x: lambda g: 3.0 * g)

M = np.eye(4) + 0.1 * np.random.default_rng(5).standard_normal((4, 4))


@primitive
def combined(x, y, z):
    return x * anp.sum(y) + anp.cumsum(z)


defvjp(
    combined,
    lambda ans, x, y, z: lambda g: g * np.sum(y),
    lambda ans, x, y, z: lambda g: np.full(y.shape, g @ x),
    lambda ans, x, y, z: lambda g: np.cumsum(g[::-1])[::-1],
)


def diagonal_sums(x):
    """Multiply a matrix by its diagonal, a product without a local structure."""
    matrix = anp.reshape(x, (2, 2))
    return anp.einsum("ii,ij->j", matrix, matrix)


BLOCKS = {
    "norm": lambda x: x / anp.linalg.norm(x, 3),
    "solve": lambda x: anp.linalg.solve(M + anp.outer(x, x), x),
    "inverse": lambda x: anp.linalg.inv(M + anp.diag(x)) @ x,
    "of constants, too": lambda x: anp.linalg.solve(anp.concatenate([[[1.0, 0, 0, 0]], M[1:] + x]), x),
    "twice the same": lambda x: x * anp.sum(diagonal_sums(x)) + diagonal_sums(2.0 * x)[0],
    "product": lambda x: x * anp.prod(x) + anp.max(x),
    "keywords": lambda x: anp.std(anp.outer(x, x), axis=0, ddof=1),
    "sum with a mask": lambda x: x + anp.sum(x, where=np.array([True, False, True, True])),
    "moved results": lambda x: anp.roll(tripled(x[::-1])[1:], 1)[[0, 1, 2, 0]] / 3,
    "no vector rule": lambda x: tripled(x) / 3 + tripled(x[0]),
    "three operands": lambda x: combined(anp.roll(x, 1), x * x, anp.roll(x, 2)) / 4,
}


RIGHT = BLOCKS | {
    "sum with a mask": lambda x: x + anp.sum(x[np.array([0, 2, 3])]),
    "twice the same": lambda x: (
        x * (x[0] * (x[0] + x[1]) + x[3] * (x[2] + x[3])) + 4 * (x[0] ** 2 + x[3] * x[2])
    ),
}
"""The same where autograd is right."""


SYSTEMS = np.random.default_rng(8).uniform(-1.0, 1.0, (4, 2, 2)) + 3.0 * np.eye(2)
STACKS = {
    "norms": lambda x: anp.linalg.norm(x, axis=-1) + anp.linalg.norm(x, None, 2),
    "norms of matrices": lambda x: anp.linalg.norm(x, axis=(0, 2), keepdims=True),
    "maxima": lambda x: anp.max(x, axis=1, keepdims=True) + anp.min(x, 0),
    "deviations": lambda x: anp.std(x, axis=(0, 1)) + anp.var(x, 1, ddof=1),
    "products": lambda x: anp.prod(x, axis=-2),
    "logarithms of sums": lambda x: logsumexp(x, axis=1, keepdims=True) + logsumexp(x, 2)[:, :, None],
    "inverses": anp.linalg.inv,
    "determinants": anp.linalg.det,
    "logarithms of determinants": lambda x: anp.linalg.slogdet(x)[1],
    "factors": lambda x: anp.linalg.cholesky(anp.eye(2) + x @ anp.swapaxes(x, 1, 2)),
    "eigenvalues": lambda x: anp.linalg.eigh(x, "U")[0],
    "eigenvectors": lambda x: anp.linalg.eigh(x)[1],
    "singular values": lambda x: anp.linalg.svd(x[:, :1], compute_uv=False),
    "singular vectors": lambda x: anp.matmul(*anp.linalg.svd(x, full_matrices=False)[::2]),
    "solutions": lambda x: anp.linalg.solve(2 * anp.eye(2) + x, anp.sin(x)),
    "solutions by constants": lambda x: anp.linalg.solve(anp.eye(2), x),
    "columns": lambda x: anp.linalg.solve(SYSTEMS[0], anp.sin(x[0])),
    "columns of several systems": lambda x: anp.linalg.solve(SYSTEMS[: len(x)], anp.sin(x)),
    "columns of a triangular system": lambda x: solve_triangular(SYSTEMS[1], x[1], trans=1) * x,
    "columns of a banded system": lambda x: solve_banded((0, 1), SYSTEMS[2], x[2]) * x,
    "convolutions by a constant given by name": lambda x: convolve(x, B=W[1:], axes=([1], [0])),
}


@pytest.mark.parametrize("name", STACKS)
def test_slices_of_a_stack_are_independent(name):
    x = np.random.default_rng(6).uniform(0.5, 1.5, (3, 2, 2))
    tape = record(STACKS[name], x)
    calls = [tape[i] for i in range(1, len(tape)) if facts_of(tape).blocks[i]]
    assert calls
    for entry in calls:
        check_slices(entry)


def check_slices(entry):
    identity = np.eye(np.size(entry.value)).reshape(-1, *np.shape(entry.value))
    of_result, *of_arguments = slices_of(entry)
    assert len(of_result) == count_slices(entry) > 1
    for positions, adjoints in zip(of_arguments, loop_adjoint(identity, entry), strict=True):
        assert sorted(positions.ravel()) == list(range(adjoints[0].size))
        derivative = adjoints.reshape(len(identity), -1)
        for results, read in zip(of_result, positions, strict=True):
            assert not np.delete(derivative, read, axis=1)[results].any()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: convolve(x, STACK, ([1], [1]), ([2], [2])),  # images
        lambda x: convolve(STACK, x, ([1], [1]), ([2], [2])),  # filters
        lambda x: convolve(x, STACK, ([0], [0])),
    ],
)
def test_slices_of_one_operand_of_a_convolution_are_independent(call):
    tape = record(call, np.random.default_rng(6).uniform(0.5, 1.5, (3, 2, 2)))
    check_slices(tape[tape.output])


@pytest.mark.parametrize(
    "call",
    [
        anp.cumsum,
        lambda x: anp.linalg.solve(x[0], x[:, :, :1]),
        lambda x: anp.linalg.solve(x[0], x[0, 1]),
        anp.linalg.norm,
        lambda x: convolve(x, x, ([1], [1])),
    ],
)
def test_other_calls_are_one_slice(call):
    tape = record(call, np.random.default_rng(6).uniform(0.5, 1.5, (3, 2, 2)))
    assert count_slices(tape[tape.output]) == 1


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", STACKS)
def test_scalar_sweeps_take_stacks(name, method):
    def f(x):
        y = anp.concatenate([[[[1.0, 0.2], [0.3, 1.0]]], anp.sin(x)])  # a slice of constants
        for _ in range(20):
            y = y + 0.01 * anp.sin(y[1:2, 0] * y)
        return STACKS[name](y)

    x = np.random.default_rng(7).uniform(0.5, 1.5, (3, 2, 2))
    jac = parallel_jacobian(f, method=method)
    expected = jacobian(f)(x)
    np.testing.assert_allclose(jac(x), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    (sweep,) = jac.plan(x).sweeps
    assert isinstance(sweep, ScalarSweep)
    assert sweep.blocks
    assert all(len(block.reads[0]) > 1 for block in sweep.blocks)


def long_loop(block, x):
    """Put enough small operations for a scalar sweep between two calls."""
    y = block(anp.sin(x))
    for _ in range(100):
        y = y + 0.01 * anp.sin(y[0] * y)
    return block(y)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", BLOCKS)
def test_scalar_sweeps_take_blocks(name, method):
    x = np.linspace(0.4, 0.9, 4)
    jac = parallel_jacobian(lambda x: long_loop(BLOCKS[name], x), method=method)
    expected = jacobian(lambda x: long_loop(RIGHT[name], x))(x)
    np.testing.assert_allclose(jac(x), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    (sweep,) = jac.plan(x).sweeps
    assert isinstance(sweep, ScalarSweep)
    assert sweep.blocks


LIKE = {
    "inverses": lambda A, b: anp.linalg.inv(A) @ b,
    "vectors": anp.linalg.solve,
    "columns": lambda A, b: anp.linalg.solve(A, anp.outer(b, b))[0],
    "by constants": lambda A, b: anp.linalg.solve(M[:3, :3], b) + anp.linalg.solve(A, np.arange(3)),
    "of a matrix by itself": lambda A, b: anp.linalg.solve(A, A)[1] * b,
    "determinants": lambda A, b: anp.linalg.det(A) * b,
    "logarithms": lambda A, b: anp.linalg.slogdet(A)[1] * b + anp.linalg.slogdet(A)[0],
    "factors": lambda A, b: anp.linalg.cholesky(A @ A.T + M[:3, :3].T @ M[:3, :3]) @ b,
    "of several shapes": lambda A, b: anp.linalg.inv(A) @ b * anp.linalg.det(A[:2, :2]),
    "stacks": lambda A, b: anp.linalg.det(anp.array([A, A * b])).sum() * b,
    "extrema": lambda A, b: anp.max(A * b, axis=1) - anp.min(b) * b,
    "extrema of two axes": lambda A, b: anp.amin(A * b, (0, -1), keepdims=True)[0] * b,
    "deviations": lambda A, b: anp.var(b) * b + anp.std(A * b, 1, keepdims=True)[:, 0] * anp.prod(A, axis=0),
    "logarithms of sums": lambda A, b: logsumexp(A, axis=0, keepdims=False) * b + logsumexp(b),
    "norms": lambda A, b: anp.linalg.norm(A * b, 3, axis=1) * b,
}


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", LIKE)
def test_like_calls_are_one_block(name, method):
    def f(x):
        state = x
        for step in range(6):
            A = M[:3, :3] + anp.outer(state, state) * (0.1 * step)  # a matrix of constants at first
            state = x + 0.1 * anp.tanh(LIKE[name](A, state))
            for _ in range(5):
                state = state + 0.01 * anp.sin(state[0] * state)
        return state

    x = np.array([0.5, -0.3, 0.8])
    jac = parallel_jacobian(f, method=method)
    expected = jacobian(f)(x)
    for _ in range(3):
        np.testing.assert_allclose(jac(x), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    (sweep,) = jac.plan(x).sweeps
    assert isinstance(sweep, ScalarSweep)
    if name != "norms":
        assert len(sweep.blocks) <= 4
        assert max(len(block.entries) for block in sweep.blocks) >= 5


ONES = np.ones((1, 4))
RUNNING = {
    "rows": lambda x: anp.cumsum(anp.reshape(x, (3, 4)), axis=1),
    "columns": lambda x: anp.cumsum(anp.reshape(x, (3, 4)), 0),
    "a middle axis": lambda x: anp.cumsum(anp.reshape(x, (2, 3, 2)), axis=-2),
    "all elements": lambda x: anp.cumsum(anp.reshape(x, (3, 4))),
    "the last one": lambda x: x * anp.cumsum(x)[-1],
    "backwards": lambda x: x[::-1].cumsum()[::-1],
    "of constants first": lambda x: anp.cumsum(anp.concatenate([ONES, anp.reshape(x, (3, 4))]), axis=0)[1:],
    "of constants last": lambda x: anp.cumsum(anp.concatenate([anp.reshape(x, (3, 4)), ONES]), axis=0)[1:],
    "of one element": lambda x: anp.cumsum(x[:1], axis=0) * x,
    "of none": lambda x: anp.concatenate([anp.cumsum(x[:0]), x]),
    "of running sums": lambda x: anp.cumsum(anp.cumsum(x) * x),
    "complex ones": lambda x: anp.real(anp.cumsum(x * (1 + 2j) * anp.exp(1j * x))),
    "the same twice": lambda x: anp.cumsum(x) * anp.cumsum(x),
}


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", RUNNING)
def test_running_sums_are_recurrences(name, method):
    def f(x):
        y = anp.sin(x)
        for _ in range(5):
            y = anp.ravel(0.3 * RUNNING[name](y))[:12]
            for _ in range(9):
                y = y + 0.01 * anp.sin(y[0] * y)
        return y

    jac, x = parallel_jacobian(f, method=method), np.linspace(0.4, 0.9, 12)
    expected = jacobian(f)(x)
    for _ in range(2):
        np.testing.assert_allclose(jac(x), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    (sweep,) = jac.plan(x).sweeps
    assert isinstance(sweep, ScalarSweep)
    assert not sweep.blocks


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_long_running_sums_take_two_coefficients_for_each_element(method):
    def f(x):
        for _ in range(20):
            x = anp.sin(anp.cumsum(x))
        return x

    (sweep,) = parallel_jacobian(f, method=method).plan(np.ones(40)).sweeps
    assert isinstance(sweep, ScalarSweep)
    assert len(sweep.indices) < 3 * 20 * 40


def test_primitives_without_adjoint_rule_are_no_blocks():
    @primitive
    def doubled(x):
        return 2.0 * x

    defjvp(doubled, lambda g, ans, x: 2.0 * g)
    jac = parallel_jacobian(lambda x: doubled(anp.sin(x)), method="tangent")
    np.testing.assert_allclose(jac(V), np.diag(2 * np.cos(V)))


def test_blocks_are_small():
    jac = parallel_jacobian(lambda x: long_loop(lambda y: anp.sort(anp.tile(y, 10))[:20], x))
    assert not any(isinstance(sweep, ScalarSweep) for sweep in jac.plan(V).sweeps)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: anp.gradient(x, 2.0),
        lambda x: anp.gradient(x, -1),
        lambda x: anp.gradient(x, np.array([0.0, 1.0, 3.0, 4.0])),
        lambda x: anp.gradient(x, edge_order=2),
    ],
)
@pytest.mark.parametrize("form", ["systems", "arrays", None])
def test_gradients_of_other_spacings_have_no_rule(monkeypatch, fun, form):
    if form:
        forced(monkeypatch, form)
    jac = parallel_jacobian(lambda x: long_loop(lambda x: fun(x**2), x), method="adjoint")
    with pytest.raises(NotImplementedError):
        jac(np.linspace(0.4, 0.9, 4))


def test_convolutions_of_long_arrays_take_no_more_memory_than_they_have_edges():
    long = np.ones(20_000)
    tape = record(lambda x: convolve(x, long[1:], mode="valid"), long)
    find_rule(tape.primitives[1])
    tracemalloc.start()
    (local,) = local_structures(tape[1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert local.rows.size == 2 * 19_999
    assert peak < 200 * local.rows.size


def test_large_convolutions_take_array_steps_if_they_have_few_directions():
    image, kernel = np.random.default_rng(0).standard_normal((64, 64)), np.ones((5, 5))
    by_kernel = record(lambda x: convolve(image, anp.reshape(x, (5, 5)), mode="valid"), np.ones(25))
    by_image = record(lambda x: convolve(anp.reshape(x, (64, 64)), kernel, mode="valid"), image.ravel())
    assert not facts_of(by_kernel).scalar_apart[by_kernel.output]
    assert facts_of(by_image).scalar_apart[by_image.output]


def test_small_layers_of_images_are_systems_whose_directions_share_seeds():
    filters = np.random.default_rng(0).standard_normal((4, 3, 3, 3))

    def layer(x):
        return anp.tanh(convolve(x, filters, axes=([2, 3], [2, 3]), dot_axes=([1], [1]), mode="valid"))

    images = np.random.default_rng(1).standard_normal((2, 3, 8, 8))
    jac = parallel_jacobian(layer)
    np.testing.assert_allclose(jac(images), jacobian(layer)(images), rtol=1e-12, atol=1e-14)
    (sweep,) = jac.plan(images).sweeps
    assert isinstance(sweep, CompressedSweep)
    assert sweep.count <= 36  # results that depend on one element: more images, or larger ones, add none
    large = record(layer, np.ones((4, 3, 64, 64)))
    assert not facts_of(large).scalar[1]
