"""Sweeps in stages: chunks of which one part has a scalar form and another one has none."""

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from sweep_forms import forced

from tapesplit import parallel_jacobian
from tapesplit.sweeps import prediction, stages
from tapesplit.sweeps.array_sweep import ArraySweep
from tapesplit.sweeps.scalar_sweep import ScalarSweep
from tapesplit.sweeps.stages import StagedSweep


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


def spectrum(x):
    """Fourier transform of many numbers; one of few is no more than a block of a system."""
    return np.fft.fft(np.tile(x, 9))[:10]


def complex_numbers_past_a_system(p):
    found = spectrum(predator_and_prey(p)[:, 1])
    return np.abs(found * again(np.abs(found))[0])


ONES = onp.ones((45, 45))
STAGED = {
    "a spectrum behind": lambda p: np.abs(spectrum(predator_and_prey(p)[:, 0])),
    "a solution behind": lambda p: np.linalg.solve(
        np.diag(np.tile(predator_and_prey(p)[:, 0], 3)) + ONES, ONES[0]
    ),
    "a spectrum before": lambda p: again(np.abs(spectrum(np.outer(p, p).ravel()))),
    "a spectrum between": lambda p: again(np.abs(spectrum(predator_and_prey(p)[:, 1]))),
    "complex numbers": lambda p: np.abs(spectrum(predator_and_prey(p)[:, 0] + 1j * p[1])),
    "complex numbers past a system": complex_numbers_past_a_system,
    "around it": lambda p: predator_and_prey(p)[-1] * again(np.abs(spectrum(p))),
}


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("name", STAGED)
def test_stages_are_swept_one_after_the_other(name, method):
    fun, p = STAGED[name], onp.array([1.1, 0.4, 0.1, 0.4])
    jac = parallel_jacobian(fun, method=method)
    for point in (p, 1.01 * p, 0.98 * p):
        expected = jacobian(fun)(point)
        onp.testing.assert_allclose(jac(point), expected, rtol=0, atol=1e-12 * onp.abs(expected).max())
    sweeps = [found for found in jac.plan(p).sweeps if isinstance(found, StagedSweep)]
    assert sweeps
    for staged in sweeps:
        assert {type(part) for part in staged.parts} == {ScalarSweep, ArraySweep}
        covered = onp.concatenate([part.chunk.entries for part in staged.parts])
        onp.testing.assert_array_equal(onp.sort(covered), staged.chunk.entries)


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("name", STAGED)
def test_stages_carry_given_directions(name, most):
    """As behind another sweep, in one go and in blocks."""
    fun, p = STAGED[name], onp.array([1.1, 0.4, 0.1, 0.4])
    expected = jacobian(fun)(p)
    random = onp.random.default_rng(0)
    for mode, carried in (("tangent", expected.T), ("adjoint", expected)):
        rows = random.standard_normal((3, len(carried)))
        jac = parallel_jacobian(fun, method=mode)
        (staged,) = jac.plan(p).sweeps
        found, product = staged.run(jac.tape(p), rows, most), rows @ carried
        onp.testing.assert_allclose(found, product, rtol=0, atol=1e-12 * onp.abs(product).max())


@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize("mode", ["tangent", "adjoint"])
def test_coefficients_are_evaluated_once_for_all_blocks(name, mode, monkeypatch):
    fun, p = STAGED[name], onp.array([1.1, 0.4, 0.1, 0.4])
    jac = parallel_jacobian(fun, method=mode)
    tape, (staged,) = jac.tape(p), jac.plan(p).sweeps
    evaluate, evaluated = ScalarSweep.coefficients, []
    monkeypatch.setattr(
        ScalarSweep, "coefficients", lambda part, tape: evaluated.append(part) or evaluate(part, tape)
    )
    monkeypatch.setattr(stages, "cached_directions", lambda count, each: 1)
    expected = jacobian(fun)(p)
    rows = onp.eye(len(expected if mode == "adjoint" else p))
    found = staged.run(tape, rows)
    want = expected if mode == "adjoint" else expected.T
    onp.testing.assert_allclose(found, want, rtol=0, atol=1e-12 * onp.abs(expected).max())
    assert len(evaluated) == len({*map(id, evaluated)}) > 0


def test_stages_keep_a_memory_limit():
    fun, p = STAGED["a spectrum between"], onp.array([1.1, 0.4, 0.1, 0.4])
    plan = parallel_jacobian(fun).plan(p)
    assert [task.form for task in plan.tasks] == ["stages"]
    least, (staged,) = max(found.least_bytes for found in plan.sweeps), plan.sweeps
    for limit in (least, 2 * least, 5 * least):  # also while a part finds its coefficients
        directions = max(1, (limit - staged.fixed_bytes) // staged.bytes_per_direction)
        handed_over = 8 * directions * sum(staged.sizes.values())
        assert handed_over + max(part.least_bytes for part in staged.parts) <= limit
    onp.testing.assert_allclose(parallel_jacobian(fun, memory_limit=least)(p), jacobian(fun)(p), rtol=1e-11)


@pytest.mark.parametrize(
    ("fun", "form"),
    [
        (lambda p: np.real(spectrum(p * (1.0 + 0.5j))), "arrays"),  # nothing to sweep as a system
        (lambda p: np.sin(p) * p[0] * np.abs(spectrum(p)[:4]), "arrays"),  # too little
        (lambda p: predator_and_prey(p).ravel(), "system"),
    ],
)
def test_other_chunks_are_swept_as_a_whole(fun, form):
    p = onp.array([1.1, 0.4, 0.1, 0.4])
    jac, expected = parallel_jacobian(fun), jacobian(fun)(p)
    onp.testing.assert_allclose(jac(p), expected, rtol=0, atol=1e-12 * onp.abs(expected).max())
    assert [task.form for task in jac.plan(p).tasks] == [form]


def test_costs_decide_about_stages(monkeypatch):
    fun, p = STAGED["a spectrum behind"], onp.array([1.1, 0.4, 0.1, 0.4])

    def form():
        jac = parallel_jacobian(fun)
        jac.cache_clear()
        return jac.plan(p).tasks[0].form

    assert form() == "stages"
    for module, name in (
        (stages, "_WORTH_A_SYSTEM"),
        (stages, "_HANDED_OVER"),
        (prediction, "_WORTH_A_LOOK"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, 1e6)
            assert form() == "arrays"
    monkeypatch.setattr(prediction, "_WORTH_STAGES", 1e-6)
    assert form() == "arrays"


def test_what_only_the_ends_read_is_dropped():
    jac, p = parallel_jacobian(STAGED["a spectrum between"]), onp.array([1.1, 0.4, 0.1, 0.4])
    (staged,) = jac.plan(p).sweeps
    assert [set(part.chunk.sources) for part in staged.parts] == [set(dropped) for dropped in staged.last_use]


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_a_system_that_reads_nothing_but_empty_arrays(monkeypatch, method):
    """A call with a keyword has no scalar form, so that a stage ends there."""
    forced(monkeypatch, "systems")
    x = onp.array([0.3, 0.7, 1.1])

    def fun(x):
        few = np.negative(x[x > 5.0], casting="safe")
        return np.concatenate([np.sin(few), onp.ones(2)])

    jac = parallel_jacobian(fun, method=method)
    onp.testing.assert_array_equal(jac(x), onp.zeros((2, 3)))
    assert isinstance(jac.plan(x).sweeps[0], StagedSweep)


def test_threads_share_the_products_between_loops():
    matrix = onp.cos(onp.arange(810_000.0)).reshape(900, 900) / 30

    def loop(x):
        for _ in range(18):
            x = x + 0.1 * np.sin(x) * np.concatenate([x[1:], x[:1]])
        return x

    plan = parallel_jacobian(lambda x: loop(matrix @ np.tanh(matrix @ loop(x))), machines=1).plan(
        onp.ones(900)
    )
    (task,) = plan.tasks
    assert task.form == "stages"
    assert task.releases_lock
    assert 0.5 * task.seconds < task.shareable < task.seconds
