"""Values that depend on the inputs through empty arrays only: their derivatives are zeros, never NaN."""

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from sweep_forms import forced

from tapesplit import parallel_jacobian, record
from tapesplit.cuts.chunks import Chunk
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps.array_sweep import compile_array_sweep
from tapesplit.sweeps.lowering import compile_scalar_sweep
from tapesplit.sweeps.sweep import run_sweep

X = onp.linspace(1.0, 4.0, 4)


def root(x):
    """Square root of the sum of no elements, whose derivative is infinite."""
    return np.sqrt(np.sum(x[x > 5.0]))


FUNCTIONS = {
    "norm": lambda x: x * (1 + np.linalg.norm(x[x > 5.0])),
    "root of squares": lambda x: x * (1 + np.sqrt(np.sum(x[x > 5.0] ** 2))),
    "inverse": lambda x: np.concatenate([x * x, np.reshape(1 / np.sum(x[x > 5.0]), (1,)), np.sin(x)]),
    "cut": lambda x: np.sqrt(np.sum(np.sin(x[x > 5.0]))) * np.array([x[0], 1.0, x[1]]),
    "complex": lambda x: x * np.real(np.sqrt(np.sum(x[x > 5.0] * 1j)) + 1),
    "block": lambda x: np.linalg.solve(np.reshape(x, (2, 2)) + root(x), x[:2] * (1 + root(x))),
    "product": lambda x: np.outer(x, np.reshape(x, (2, 2)) @ (np.ones(2) * root(x))),
    "stages": lambda x: np.real(np.fft.fft(np.tile(x, 9) * (1 + root(x)))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("form", ["systems", "arrays"])
def test_derivatives_through_empty_arrays_are_zero(monkeypatch, name, method, form):
    forced(monkeypatch, form)
    with onp.errstate(all="ignore"):
        found, expected = parallel_jacobian(FUNCTIONS[name], method=method)(X), jacobian(FUNCTIONS[name])(X)
    assert onp.isfinite(expected).all()
    onp.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("adjoint_mode", [False, True])
@pytest.mark.parametrize("form", ["arrays", "system"])
@pytest.mark.parametrize("last", ["sum", "sqrt"])
def test_cuts_at_such_values(form, adjoint_mode, last):
    """Chunks before and behind a separator that holds one: it has no directions."""
    tape = record(lambda x: x * (1 + root(x)), X)
    facts = facts_of(tape)
    cut = next(i for i in range(len(tape)) if tape.label(i) == last)
    before = Chunk((0,), (0, cut), onp.arange(1, cut + 1), 4, 5, 1)
    behind = Chunk((0, cut), (len(tape) - 1,), onp.arange(cut + 1, len(tape)), 5, 4, 1)
    for chunk in (before, behind):
        if form == "arrays":
            sweep = compile_array_sweep(tape, facts, chunk, 5, adjoint_mode=adjoint_mode)
        else:
            sweep = compile_scalar_sweep(tape, facts, chunk, 5, adjoint_mode=adjoint_mode)
        with onp.errstate(all="ignore"):
            found = run_sweep(sweep, tape, None)
        onp.testing.assert_array_equal(found, onp.eye(chunk.m, chunk.n))
