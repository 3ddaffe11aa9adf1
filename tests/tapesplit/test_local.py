"""Local structures of sums and products equal autograd's own derivative."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian

from tapesplit import parallel_jacobian, record
from tapesplit.facts import facts_of
from tapesplit.rules import local_structure, loop_adjoint
from tapesplit.scalar_sweep import ScalarSweep
from tapesplit.structure import structure_of

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
}


@pytest.mark.parametrize("name", CALLS)
def test_edges_of_a_call_are_its_derivative(name):
    tape = record(CALLS[name], A)
    entry = tape[tape.output]
    identity = np.eye(np.size(entry.value)).reshape(-1, *np.shape(entry.value))
    for argnum, expected in zip(entry.argnums, loop_adjoint(identity, entry), strict=True):
        local = local_structure(entry, argnum)
        jacobian_of_call = np.zeros((len(identity), np.size(entry.args[argnum])))
        factor = (
            local.factor if local.positions is None else np.ravel(entry.args[local.factor])[local.positions]
        )
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


def test_products_of_complex_or_stacked_matrices_have_no_local_structure():
    for f in (lambda x: anp.real(anp.dot(x, A.T * 1j) * 1j), lambda x: anp.stack([x, x]) @ B):
        tape = record(f, A)
        facts = facts_of(tape, structure_of(tape))
        products = [i for i in range(len(tape)) if tape.label(i) in {"dot", "matmul"}]
        assert products
        assert not facts.scalar[products].any()
