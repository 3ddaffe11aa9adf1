"""Sweeps in stages: chunks of which one part has a scalar form and another one has none."""

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian

from tapesplit import parallel_jacobian
from tapesplit.array_sweep import ArraySweep
from tapesplit.scalar_sweep import ScalarSweep
from tapesplit.stages import StagedSweep


def predator_and_prey(p, steps=15):
    """Populations after each of some steps of Heun's method."""

    def rate(y):
        return np.array([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])

    y, out = np.array([10.0, 5.0]) + p[:2], []
    for _ in range(steps):
        k = rate(y)
        y = y + 0.02 * (k + rate(y + 0.04 * k))
        out.append(y)
    return np.array(out)


def again(y):
    """Another loop, of single numbers, behind an operation without a scalar form."""
    total = y[0]
    for k in range(40):
        total = total + 0.1 * np.sin(total * y[k % 5])
    return np.array([total, y[1]])


ONES = onp.ones((45, 45))
STAGED = {
    "a spectrum behind": lambda p: np.abs(np.fft.fft(predator_and_prey(p)[:, 0])),
    "a solution behind": lambda p: np.linalg.solve(
        np.diag(np.tile(predator_and_prey(p)[:, 0], 3)) + ONES, ONES[0]
    ),
    "a spectrum before": lambda p: again(np.abs(np.fft.fft(np.outer(p, p).ravel()))),
    "a spectrum between": lambda p: again(np.abs(np.fft.fft(predator_and_prey(p)[:, 1]))),
    "a complex number": lambda p: predator_and_prey(p).ravel() * np.abs(p[0] + 1j * p[1]),
    "around it": lambda p: predator_and_prey(p)[-1] * again(np.abs(np.fft.fft(p * np.ones((2, 4)))).ravel()),
}


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("name", STAGED)
def test_stages_are_swept_one_after_the_other(name, method):
    fun, p = STAGED[name], onp.array([1.1, 0.4, 0.1, 0.4])
    jac = parallel_jacobian(fun, method=method)
    for point in (p, 1.01 * p, 0.98 * p):
        expected = jacobian(fun)(point)
        onp.testing.assert_allclose(jac(point), expected, rtol=0, atol=1e-12 * onp.abs(expected).max())
    sweeps = [sweep for sweep in jac.plan(p).sweeps if isinstance(sweep, StagedSweep)]
    assert sweeps
    for sweep in sweeps:
        assert {ScalarSweep} < {type(part) for part in sweep.parts} <= {ScalarSweep, ArraySweep}
        covered = onp.concatenate([part.chunk.entries for part in sweep.parts])
        onp.testing.assert_array_equal(onp.sort(covered), sweep.chunk.entries)


def test_stages_keep_a_memory_limit():
    fun, p = STAGED["a spectrum between"], onp.array([1.1, 0.4, 0.1, 0.4])
    plan = parallel_jacobian(fun).plan(p)
    least = max(sweep.bytes_per_direction for sweep in plan.sweeps)
    onp.testing.assert_allclose(parallel_jacobian(fun, memory_limit=least)(p), jacobian(fun)(p), rtol=1e-11)


@pytest.mark.parametrize(
    "fun",
    [
        lambda p: np.real(np.fft.fft(p * (1.0 + 0.5j))),  # nothing to sweep as a system
        lambda p: np.abs((predator_and_prey(p)[:, 0] + 1j * p[0]) * np.fft.fft(predator_and_prey(p)[:, 1])),
        lambda p: predator_and_prey(p, 2).ravel() + np.abs(np.fft.fft(p)),  # too little
    ],
)
def test_other_chunks_are_swept_as_a_whole_or_in_fewer_stages(fun):
    p = onp.array([1.1, 0.4, 0.1, 0.4])
    expected = jacobian(fun)(p)
    onp.testing.assert_allclose(
        parallel_jacobian(fun)(p), expected, rtol=0, atol=1e-12 * onp.abs(expected).max()
    )
