"""Predicted memory against what tracemalloc sees, and limits that hold."""

import platform
import subprocess
import sys
import textwrap

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian
from autograd.scipy.signal import convolve
from autograd.scipy.stats import multivariate_normal
from sweep_forms import forced
from traced_memory import traced_peak

from tapesplit import execute, parallel_jacobian, record
from tapesplit.errors import MemoryLimitError
from tapesplit.sweeps import array_sweep, directions


def layers(x):
    for _ in range(4):
        x = anp.tanh(MIX @ x)
    return x


def stencil(x):
    for _ in range(60):
        x = anp.sin(x + 0.1 * x * (anp.roll(x, 1) - anp.roll(x, -1)))
    return x[:40]


def spectrum(x):
    for k in range(40):
        x = x + 0.1 * anp.sin(x * x[k]) - 0.01 * anp.cumsum(x)[k]
    return anp.abs(anp.fft.fft(x))


def fit(p):
    return p[0] * anp.exp(-p[1] * TIMES) * anp.cos(p[2] * TIMES)


def chain_of_masses(x):
    force = anp.sin(x[1:] - x[:-1])
    return x - 0.1 * anp.concatenate([force[:1], force[1:] - force[:-1], -force[-1:]])


def field(p):
    """Take steps of a field whose derivatives by all parameters are too many for a cache."""
    u = anp.tanh(WAVES @ p)
    for _ in range(3):
        u = u + 0.1 * (anp.roll(u, 1) - 2.0 * u + anp.roll(u, -1)) * anp.exp(-u * u)
    return anp.sum(anp.reshape(u, (150, 200)), axis=1)


WAVES = np.cos(np.arange(30_000 * 120)).reshape(30_000, 120)
LONG = np.cos(np.arange(700 * 7000)).reshape(700, 7000)
MIX = np.random.default_rng(0).standard_normal((250, 250)) / 16
SQUARES = np.random.default_rng(1).standard_normal((3, 300, 300)) / 17
TIMES = np.linspace(0.0, 3.0, 40_000)
INPUTS, LAST = np.random.default_rng(0).standard_normal((8, 60)), np.ones((6, 60)) / np.arange(1, 7)[:, None]


def recurrent(weights):
    state = INPUTS[0]
    for given in INPUTS:
        state = anp.tanh(weights @ state + given)
    return LAST @ state


PROBLEMS = {
    "recurrent": (recurrent, np.eye(60) / 2),
    "recurrent of parameters": (lambda p: recurrent(anp.reshape(p, (60, 60))), np.eye(60).ravel() / 2),
    "recurrent next to the identity": (lambda W: recurrent(W + np.eye(60)), np.eye(60) / 2),
    "layers": (layers, np.ones(250)),
    "stencil": (stencil, np.linspace(-1.0, 1.0, 100)),
    "spectrum": (spectrum, np.linspace(-1.0, 1.0, 200)),
    "fit": (fit, np.array([1.0, 0.5, 3.0])),
    "chain of masses": (chain_of_masses, np.linspace(0.0, 1.0, 500)),
}


def thin(p):
    return anp.tanh(WAVES[:1200, :40] @ p)


def thin_transposed(p):
    return anp.tanh(WAVES[:1200, :40].T @ p)


def gram(p):
    rows = anp.reshape(p, (60, 5))
    return anp.sin(rows @ rows.T)


def factors(p):
    u, s, vt = anp.linalg.svd(anp.reshape(p, (16, 16)), full_matrices=False)
    return anp.concatenate([anp.ravel((u * anp.sin(s)) @ vt), s])


def inverse(p):
    return anp.linalg.inv(anp.reshape(p, (15, 15)) + 4.0 * np.eye(15))


def products(p):
    matrix = anp.reshape(p, (20, 20))
    return anp.tanh(anp.einsum("ij,jk->ik", anp.sin(matrix), matrix)) @ matrix


def congruence(k):
    B = np.cos(np.arange(3600.0)).reshape(36, 25, 4)
    stiffness = anp.einsum("iea,e,jea->ij", B, anp.exp(k), B, optimize=True)
    return anp.einsum("cij,ij->c", np.sin(np.arange(12960.0)).reshape(10, 36, 36), anp.tanh(stiffness))


def information(w):
    G = np.cos(np.arange(3600.0) ** 1.3).reshape(300, 12)
    return anp.diag(anp.linalg.cholesky(anp.einsum("qi,q,qj->ij", G, anp.exp(w), G)))


def power(x):
    waves = anp.fft.fft(anp.sin(MIX @ x))
    return anp.real(waves * anp.conj(waves))


def residuals(x):
    for _ in range(4):
        x = x + anp.tanh(MIX @ x)
    return x


def softmax(x):
    e = anp.exp(anp.reshape(MIX @ x, (25, 10)))
    return e / anp.sum(e, axis=1, keepdims=True)


def neighbors(x):
    for _ in range(8):
        x = anp.sin(x) * anp.roll(x, 1) + x
    return x


def image(x):
    u = anp.reshape(x, (30, 30))
    for _ in range(3):
        u = anp.tanh(u + 0.1 * (anp.roll(u, 1, 0) + anp.roll(u, -1, 0) + anp.roll(u, 1, 1) - 3.0 * u))
    return u


def inverses(x):
    return anp.linalg.inv(anp.reshape(x, (40, 5, 5)) + 4.0 * np.eye(5))


def filters(x):
    kernels = np.cos(np.arange(432.0)).reshape(3, 16, 3, 3)
    features = convolve(
        anp.reshape(x, (3, 12, 12)), kernels, axes=([1, 2], [2, 3]), dot_axes=([0], [0]), mode="valid"
    )
    return convolve(anp.tanh(features), kernels[0], axes=([1, 2], [1, 2]), dot_axes=([0], [0]), mode="valid")


def widened(x):
    return anp.tanh(WAVES[:4000, :100] @ x) @ WAVES[:4000, :100]


def narrow_before_a_long_product(x):
    return anp.sin(anp.dot(LONG, anp.sin(anp.dot(x, LONG[:8]))))


def several_matrices(x):
    return anp.tanh(SQUARES[0] @ x) * (SQUARES[1] @ x) * (SQUARES[2] @ x)


def itself_among_products(x):
    return x * (SQUARES[0] @ x) * (SQUARES[1] @ x)


def rotations(x):
    left, _, right = anp.linalg.svd(anp.reshape(x, (30, 8, 8)) + SHEARS, full_matrices=False)
    return left @ right


def axes(x):
    return anp.linalg.eigh(anp.reshape(x, (30, 8, 8)) + SHEARS)[1]


SHEARS = np.random.default_rng(3).standard_normal((30, 8, 8))


def table(x):
    return anp.outer(anp.sin(x), anp.cos(x))


def pairs(x):
    y = MIX[:100, :100] @ x
    return anp.sum(anp.exp(-((y[:, None] - y[None, :]) ** 2)), axis=1)


def loop(x):
    a, b = x[0], x[1]
    for _ in range(300):
        a, b = a + 0.01 * b, b - 0.01 * anp.sin(a) * a
    return anp.array([a, b])


def decay(p):
    return p[0] * anp.exp(-p[1] * TIMES[::20]) * anp.cos(p[2] * TIMES[::20])


def waves_and_loop(x):
    a, b = x[0], x[1]
    for _ in range(100):
        a, b = a + 0.01 * b, b - 0.01 * anp.sin(a) * a
    return anp.real(anp.fft.fft2(anp.outer(x, anp.cos(x)) * a)) * b


def phases(x):
    return anp.real(anp.exp(1j * (MIX @ x)))


def moduli(x):
    return anp.abs(1j * x + MIX @ x)


def shortcut(x):
    return MIX @ anp.tanh(x) + x


KINDS = {
    "thin": (thin, 40),
    "thin transposed": (thin_transposed, 1200),
    "gram": (gram, 300),
    "factors": (factors, 256),
    "inverse": (inverse, 225),
    "products": (products, 400),
    "congruence": (congruence, 25),
    "information": (information, 300),
    "power": (power, 250),
    "residuals": (residuals, 250),
    "softmax": (softmax, 250),
    "neighbors": (neighbors, 1500),
    "image": (image, 900),
    "inverses": (inverses, 1000),
    "rotations": (rotations, 30 * 64),
    "axes": (axes, 30 * 64),
    "filters": (filters, 432),
    "widened": (widened, 100),
    "narrow before a long product": (narrow_before_a_long_product, 8),
    "several matrices": (several_matrices, 300),
    "itself among products": (itself_among_products, 300),
    "table": (table, 60),
    "pairs": (pairs, 100),
    "loop": (loop, 2),
    "waves and loop": (waves_and_loop, 40),
    "decay": (decay, 3),
    "phases": (phases, 250),
    "moduli": (moduli, 250),
    "shortcut": (shortcut, 250),
}


def executed_peak(jac, x, **options):
    """Return the peak of an execution in a warm process."""
    plan, tape = jac.plan(x), jac.tape(x)
    execute(plan, tape, **options)
    return traced_peak(lambda: execute(plan, tape, **options))


@pytest.mark.parametrize("name", PROBLEMS)
def test_predicted_peak_is_near_the_measured_one(name):
    f, x = PROBLEMS[name]
    jac = parallel_jacobian(f, machines=1)
    measured = executed_peak(jac, x)
    assert measured / 1.5 < jac.plan(x).peak_bytes < 1.5 * measured


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", KINDS)
def test_predicted_peaks_of_many_kinds_in_both_modes(name, method):
    f, size = KINDS[name]
    x = np.linspace(0.2, 1.1, size) + 0.01 * np.cos(7.0 * np.arange(size))
    jac = parallel_jacobian(f, machines=1, method=method)
    measured = executed_peak(jac, x)
    assert measured / 1.5 < jac.plan(x).peak_bytes < 1.5 * measured


def test_adjoints_that_two_values_share_are_copied_once(monkeypatch):
    """As soon as something is added to one of them: slices of it here, each in place."""
    forced(monkeypatch, "arrays")
    long, short = np.random.default_rng(0).standard_normal((100, 1000)), np.ones((100, 5))

    def fun(x):
        first, second = anp.sin(x), anp.sin(2.0 * x)
        parts = short @ anp.tanh(first[:5]) + short @ anp.tanh(second[1:6])
        return anp.tanh(long @ (0.5 * first + 0.5 * second) + parts)

    x = np.linspace(0.0, 1.0, 1000)
    jac = parallel_jacobian(fun, machines=1, method="adjoint")
    np.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-12, atol=1e-12)
    assert jac.plan(x).peak_bytes == pytest.approx(executed_peak(jac, x), rel=0.1)


def test_there_is_one_block_where_nothing_but_the_result_is_alive():
    """Blocks would be copied into it."""
    plan = parallel_jacobian(lambda x: anp.sin(x) * anp.exp(x), machines=1).plan(np.ones(2000))
    assert 8 * 2000**2 <= plan.peak_bytes < 1.05 * 8 * 2000**2


def test_the_peak_counts_that_part_of_all_directions_is_joined():
    jac = parallel_jacobian(lambda a, b, c: anp.concatenate((1.5 * b, anp.tanh(a), a)), (0, 1, 2), machines=1)
    args = np.ones(360), np.ones(240), np.ones(18)  # the last one is not read
    plan, tape = jac.plan(*args), jac.tape(*args)
    measured = traced_peak(lambda: execute(plan, tape))
    assert measured / 1.5 < plan.peak_bytes < 1.5 * measured


@pytest.mark.parametrize("output", ["at each step", "in the end"])
def test_products_of_loops_over_time_are_multiplied_out_in_time(output, monkeypatch):
    """Their factors would take more memory than the matrix."""
    forced(monkeypatch, "arrays")

    def network(w):
        matrix, weights = w[:1600].reshape(40, 40), w[1600:].reshape(5, 40)
        state, found = anp.ones(40), []
        for step in range(60):
            state = anp.tanh(matrix @ state + 0.1 * step)
            found.append((weights @ state if output == "in the end" else weights[0] @ state) ** 2)
        return anp.hstack(found) if output == "at each step" else found[-1]

    w = 0.1 * np.random.default_rng(3).standard_normal(1800)
    jac = parallel_jacobian(network, machines=1, method="adjoint")
    expected = jacobian(network)(w)
    np.testing.assert_allclose(jac(w), expected, rtol=1e-11, atol=1e-13)
    (sweep,) = jac.plan(w).sweeps
    assert sweep.block(60) == 60
    measured = executed_peak(jac, w)
    assert measured - BUFFERS < jac.plan(w).peak_bytes < 1.5 * measured + BUFFERS
    limit = sweep.fixed_bytes + 4 * sweep.bytes_per_direction
    assert executed_peak(jac, w, memory_limit=limit) < limit + expected.nbytes + BUFFERS


BUFFERS = 100_000
"""Bytes that NumPy's own buffers take, and what is as small."""


@pytest.mark.parametrize("share", [0.1, 0.4])
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", [name for name in KINDS if name != "loop"])
def test_memory_limits_hold(name, method, share):
    """Derivatives of all directions in a block, partial derivatives and coefficients count."""
    f, size = KINDS[name]
    x = np.linspace(0.2, 1.1, size) + 0.01 * np.cos(7.0 * np.arange(size))
    jac = parallel_jacobian(f, machines=1, method=method)
    plan, expected = jac.plan(x), execute(jac.plan(x), jac.tape(x))
    limit = max(int(share * plan.peak_bytes), *(sweep.least_bytes for sweep in plan.sweeps))
    found = execute(plan, jac.tape(x), memory_limit=limit)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    del found
    assert executed_peak(jac, x, memory_limit=limit) < expected.nbytes + 1.5 * limit + BUFFERS


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize(("form", "most"), [("arrays", 32e6), ("systems", 48e6)])
def test_large_sweeps_take_their_directions_in_blocks(method, form, most, monkeypatch):
    forced(monkeypatch, form)
    x = np.linspace(-0.1, 0.1, 120)
    jac = parallel_jacobian(field, method=method, machines=1)
    plan, tape = jac.plan(x), jac.tape(x)
    (sweep,) = plan.sweeps
    assert type(sweep).__name__ == ("ArraySweep" if form == "arrays" else "StagedSweep")
    assert sweep.bytes_per_direction * 120 > 64e6
    assert plan.peak_bytes < most
    assert plan.peak_bytes / 1.5 < executed_peak(jac, x) < 1.5 * plan.peak_bytes
    few = execute(plan, tape, memory_limit=sweep.least_bytes + 9 * sweep.bytes_per_direction)
    np.testing.assert_allclose(jac(x), few, rtol=0, atol=1e-13 * np.abs(few).max())
    few = jacobian(lambda p: field(p)[:2])(x)
    np.testing.assert_allclose(jac(x)[:2], few, rtol=0, atol=1e-12 * np.abs(few).max())


def test_few_directions_of_long_arrays_are_one_block():
    times = np.linspace(0.0, 3.0, 400_000)
    jac = parallel_jacobian(lambda p: p[0] * anp.exp(-p[1] * times) * anp.cos(p[2] * times), machines=1)
    x = np.array([1.0, 0.5, 3.0])
    measured = executed_peak(jac, x)
    assert measured / 1.5 < jac.plan(x).peak_bytes < 1.5 * measured


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_blocks_cut_through_the_identities_of_several_inputs(method, monkeypatch):
    """Directions of a block belong to some of the inputs, and to some elements of these."""

    def both(x, y):
        z = anp.concatenate([anp.sin(x[::-1]), MIX[:60, :50] @ anp.exp(y), x[3:9] * 2.0])
        return anp.imag(anp.fft.ifft(anp.fft.fft(z) * (1.0 + 2.0j))) * z

    args = np.linspace(0.1, 1.0, 40), np.linspace(-1.0, 0.5, 50)
    jac = parallel_jacobian(both, (0, 1), method=method, machines=1)
    whole = jac(*args)
    assert isinstance(jac.plan(*args).sweeps[0], array_sweep.ArraySweep)
    for block in (1, 3, 17):
        monkeypatch.setattr(array_sweep, "cached_directions", lambda *_, block=block: block)
        for found, expected in zip(jac(*args), whole, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_blocks_take_as_much_memory_as_the_partials_that_each_forms_anew(monkeypatch):
    """Blocks that fit into caches would form the derivatives of all pairs again and again."""
    monkeypatch.setattr(directions, "_BYTES_AT_ONCE", 0)
    monkeypatch.setattr(directions, "_BYTES_OF_A_BLOCK", 1000)
    x = np.linspace(-1.0, 1.0, 60)

    def sweep_of(f):
        jac = parallel_jacobian(f, method="tangent", machines=1)
        np.testing.assert_allclose(jac(x), jacobian(f)(x), rtol=0, atol=1e-13)
        return jac.plan(x).sweeps[0]

    pairs = sweep_of(lambda x: anp.tanh(x[:, None] - x[None, :]) @ np.ones(60))
    assert pairs.block(60) == 60
    assert pairs.block(10**6) == pairs.fixed_bytes // pairs.bytes_per_direction > 60
    few = sweep_of(lambda x: anp.sin(MIX[:60, :60] @ anp.exp(x)))
    assert few.block(60) < 60


def test_large_diagonals_stay_diagonals():
    x = np.linspace(-1.0, 1.0, 3000)
    jac = parallel_jacobian(anp.sin, machines=1)
    np.testing.assert_allclose(np.diag(jac(x)), np.cos(x), rtol=1e-15)
    assert np.count_nonzero(jac(x)) == x.size
    assert executed_peak(jac, x) < 1.6 * 8 * 3000**2


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", ["layers", "stencil"])
def test_memory_limit_goes_through_directions_in_blocks(name, method):
    f, x = PROBLEMS[name]
    jac = parallel_jacobian(f, method=method)
    plan, expected = jac.plan(x), jac(x)
    limit = plan.sweeps[0].least_bytes + plan.sweeps[0].bytes_per_direction * 4
    limited = parallel_jacobian(f, method=method, memory_limit=limit)(x)
    np.testing.assert_allclose(limited, expected, rtol=0, atol=1e-14 * np.abs(expected).max())
    peak = executed_peak(jac, x, memory_limit=limit)
    assert peak < 1.5 * limit + expected.nbytes + BUFFERS
    assert peak < executed_peak(jac, x)
    assert jac.plan(x).peak_bytes > limit


@pytest.mark.parametrize(
    "join",
    [
        lambda x: anp.concatenate([anp.sin(x), anp.cos(x)]),
        lambda x: anp.stack([anp.sin(x), anp.cos(x), x]),
        lambda x: anp.concatenate([MIX @ x, anp.sin(x)]),
    ],
)
def test_directions_of_values_that_are_joined_keep_a_limit(join):
    x, limit = np.linspace(-1.0, 1.0, 250), 400_000
    jac = parallel_jacobian(join, machines=1)
    expected = jac(x)
    np.testing.assert_array_equal(parallel_jacobian(join, machines=1, memory_limit=limit)(x), expected)
    assert executed_peak(jac, x, memory_limit=limit) < expected.nbytes + 1.2 * limit


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_limit_of_one_direction_takes_one_at_a_time_and_less_is_refused(name, method):
    f, x = PROBLEMS[name]
    if name == "fit":
        x, f = np.array([1.0, 0.5, 3.0]), lambda p: fit(p)[::1000]
    jac = parallel_jacobian(f, method=method, machines=1)
    plan, expected = jac.plan(x), jac(x)
    needed = max(sweep.least_bytes for sweep in plan.sweeps if sweep)
    with pytest.raises(MemoryLimitError, match=refused(needed)):
        execute(plan, record(f, x), memory_limit=needed - 1)
    # A plan that is made with a limit takes array steps where a system is too large.
    smallest = parallel_jacobian(f, method=method, machines=1, memory_limit=1)
    fewest = max(sweep.least_bytes for sweep in smallest.plan(x).sweeps if sweep)
    assert fewest <= needed
    with pytest.raises(ValueError, match=refused(fewest)):
        parallel_jacobian(f, method=method, machines=1, memory_limit=fewest - 1)(x)
    for limit in (needed, fewest):
        limited = parallel_jacobian(f, method=method, machines=1, memory_limit=limit)(x)
        np.testing.assert_allclose(limited, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def refused(needed):
    """What is said of a limit that is one byte too small."""
    return (
        f"memory_limit is {needed - 1} bytes, but in the Jacobian of .* one direction alone of its largest "
        f"sweep takes {needed}; set memory_limit to {needed} at least"
    )


def test_systems_that_exceed_a_limit_give_way_to_array_steps():
    weights = np.random.default_rng(0).standard_normal((8, 8)) / 3.0

    def loop(x):
        for _ in range(60):
            x = x + 0.1 * anp.sin(weights @ x) * x
        return x

    x, jac = np.linspace(0.1, 1.0, 8), parallel_jacobian(loop, machines=1)
    (system,), limit = jac.plan(x).sweeps, 20_000
    assert type(system).__name__ == "ScalarSweep"
    assert system.least_bytes > limit
    limited = parallel_jacobian(loop, machines=1, memory_limit=limit)
    (task,), (sweep,) = limited.plan(x).tasks, limited.plan(x).sweeps
    assert task.form == "arrays"
    assert task.seconds > jac.plan(x).tasks[0].seconds
    assert sweep.least_bytes <= limit
    np.testing.assert_allclose(limited(x), jac(x), rtol=1e-12)
    assert limited.plan(x).peak_bytes <= limit + 8 * 64 < jac.plan(x).peak_bytes
    assert executed_peak(limited, x, memory_limit=limit) < system.least_bytes


def test_a_system_stays_where_array_steps_need_more_memory():
    def copied(y):
        for _ in range(30):
            y = anp.reshape(anp.concatenate([y] * 8), (8, -1))[3]
        return y * y

    x = np.linspace(0.1, 1.0, 60)
    plan = parallel_jacobian(copied, machines=1, method="tangent").plan(x)
    needed = max(sweep.least_bytes for sweep in plan.sweeps)
    with pytest.raises(MemoryLimitError, match=refused(needed)):
        parallel_jacobian(copied, machines=1, method="tangent", memory_limit=needed - 1)(x)


def test_a_jacobian_without_a_sweep_keeps_any_limit():
    assert parallel_jacobian(lambda x: x[:0], memory_limit=1)(np.ones(3)).shape == (0, 3)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries learn nothing")
def test_calls_reuse_the_memory_of_earlier_ones():
    script = """
        import resource
        import autograd.numpy as np
        from tapesplit import parallel_jacobian
        jac = parallel_jacobian(lambda x: np.sin(x) * np.sum(x), machines=1)
        x = np.ones(400)  # a Jacobian of 1.3 MB: more than 300 pages
        for _ in range(3):
            jac(x)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(10):
            jac(x)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        """
    done = subprocess.run(  # noqa: S603 (our own script)
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 300


def test_long_sums_of_arrays_do_not_keep_all_summands(monkeypatch):
    monkeypatch.setattr(
        "tapesplit.planning.compiling._WORTH_COLORING", 0.0
    )  # array steps, not a sparse system
    factors = np.random.default_rng(0).standard_normal((64, 4, 40))

    def total(x):
        matrix = x[0].T @ factors[0]
        for left, right in zip(x[1:], factors[1:], strict=True):
            matrix = matrix + left.T @ right
        return anp.sin(matrix)

    plan = parallel_jacobian(total, method="tangent").plan(np.ones((64, 4, 40)))
    assert plan.sweeps[0].bytes_per_direction < 30 * 8 * 40 * 40


def test_peaks_count_the_copies_of_adjoints_that_are_summed_by_a_matrix():
    rows, weights = (
        np.random.default_rng(1).integers(0, 146, 142),
        np.random.default_rng(2).random((146, 146)),
    )

    def chosen(h):
        return anp.sum(anp.dot(weights, h)[rows], axis=1)

    h = np.random.default_rng(3).standard_normal((146, 3))
    jac = parallel_jacobian(chosen, machines=1, method="adjoint")
    plan, tape = jac.plan(h), jac.tape(h)
    execute(plan, tape)
    assert plan.peak_bytes == pytest.approx(traced_peak(lambda: execute(plan, tape)), rel=0.15)


def test_memory_of_sums_over_tables_is_predicted():
    """A sum has the number 1 as its derivative, and contractions make no products besides their result."""
    places = np.random.default_rng(0).standard_normal((60, 40))

    def densities(x):
        distances = anp.sum((anp.reshape(x, (40, 40))[:, None, :] - places) ** 2, axis=-1)
        return anp.sum(anp.exp(-0.05 * distances), axis=1)

    x = np.random.default_rng(1).standard_normal(1600)
    jac = parallel_jacobian(densities, machines=1)
    np.testing.assert_allclose(jac(x), jacobian(densities)(x), rtol=0, atol=1e-13)
    tape, plan = jac.tape(x), jac.plan(x)
    assert (
        traced_peak(lambda: jac.of_tape(tape))
        < plan.peak_bytes
        < 2.1 * traced_peak(lambda: jac.of_tape(tape))
    )


@pytest.mark.parametrize("limit", [None, 1_300_000])
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("density", [multivariate_normal.logpdf, multivariate_normal.pdf])
def test_memory_of_densities_of_many_points_is_predicted(density, method, limit):
    """By the covariance they take no array of all directions, points and coordinates."""
    points = np.random.default_rng(0).standard_normal((600, 9))

    def values(x):
        factor = anp.reshape(x, (9, 9)) + 4.0 * np.eye(9)
        found = density(points, np.zeros(9), factor @ factor.T / 9.0)
        return (
            found if method == "tangent" else anp.exp(found) @ np.cos(np.outer(np.arange(600), np.arange(40)))
        )

    x = np.random.default_rng(1).standard_normal(81)
    jac = parallel_jacobian(values, machines=1, method=method, memory_limit=limit)
    np.testing.assert_allclose(jac(x), jacobian(values)(x), rtol=1e-9, atol=1e-12)
    plan, tape = jac.plan(x), jac.tape(x)
    assert plan.peak_bytes <= (limit or np.inf)
    assert 0.5 * plan.peak_bytes < traced_peak(lambda: execute(plan, tape)) < plan.peak_bytes
