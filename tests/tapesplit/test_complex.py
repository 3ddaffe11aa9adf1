"""Complex numbers inside of real functions: pairs of real elements for scalar sweeps, stages and cuts."""

import warnings

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from autograd.extend import defjvp, defvjp, primitive
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sweep_forms import forced

from tapesplit import defvector, parallel_jacobian, record
from tapesplit.cuts.chunks import Chunk
from tapesplit.rules import registry
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps.array_sweep import ArraySweep, compile_array_sweep
from tapesplit.sweeps.scalar_sweep import ScalarSweep

LOAD = 1.5 - 0.5j
SIGNS = onp.array([1.0, -1.0, 1j, 2.0])


def two_by_two(v):
    return np.reshape(np.tile(v, 4)[:4], (2, 2))


PARTS = (np.real, np.imag, lambda v: np.abs(v + 0.01))
UNARY = [
    lambda v: np.exp(0.3 * v),
    lambda v: 0.5 * v * v,
    np.conj,
    np.conjugate,
    np.real,
    np.imag,
    lambda v: 1.0 / (v + 3.1),
    lambda v: 1j / (v + 2.5),
    lambda v: np.sqrt(v + 4.0),
    lambda v: np.abs(v + 0.2 + 0.1j),
    lambda v: np.angle(v + 2.2j),
    lambda v: np.sin(0.7 * v),
    lambda v: np.tanh(0.3 * v),
    lambda v: np.log(v + 5.0),
    lambda v: (v + 3.0) ** (0.5 + 0.1j),
    lambda v: (2.0j) ** np.real(0.2 * v),
    lambda v: v * 1j,
    lambda v: v * onp.complex128(0.3 + 0.4j),
    lambda v: 2.0 - v,
    lambda v: np.real(v) + 2j * np.imag(v),
    lambda v: np.conj(v) * v,
    lambda v: v.astype(complex),
    lambda v: v * SIGNS[: len(v)],
    lambda v: np.where(onp.arange(len(v)) % 2 == 0, v, 0.5 * np.conj(v)),
]
BINARY = [np.add, np.subtract, np.multiply, lambda u, v: u / (v + 4.5), lambda u, v: u * np.conj(v)]
OTHERS = [
    lambda v: v[::-1],
    lambda v: v[-1] * np.ones(2),
    lambda v: np.concatenate([v, np.real(v)])[:4],
    lambda v: np.array([v[0], v[-1] * 1j, 1.0, 2j]),
    lambda v: np.array([[v[0], np.real(v[0])], [1j, v[-1]]]).ravel(),
    lambda v: np.stack([v, v * 2])[:, 0],
    lambda v: two_by_two(v) @ np.array([v[0], 1j]),
    lambda v: np.dot(two_by_two(v), two_by_two(np.conj(v))).ravel(),
    lambda v: np.matmul(np.stack([two_by_two(v)] * 2), two_by_two(v) + LOAD).ravel()[:4],
    lambda v: np.sum(v) * np.ones(2),
    lambda v: np.mean(v) * v,
    lambda v: np.dot(SIGNS[: len(v)], v) * v,
    lambda v: np.outer(v, np.real(v)).ravel()[:4],
    lambda v: np.einsum("i,j->ij", v, v)[0],
    lambda v: np.diff(np.concatenate([v, v]))[:4],
    lambda v: np.pad(v, 1, mode="constant")[:4],
    lambda v: np.inner(v, np.conj(v)) * np.ones(2),
    np.cumsum,
    np.fft.fft,
    lambda v: np.real(np.fft.ifft(v * LOAD)),
    lambda v: np.linalg.solve(np.diag(v + 6.0), v + 0j),
    lambda v: np.linalg.inv(two_by_two(0.1 * v) + 2.0 * onp.eye(2)).ravel(),
    lambda v: np.linalg.norm(v + 1j) * v,
]


def decoded(program):
    """Return the function that a list of integers stands for; values are vectors of one to four numbers."""

    def fun(x):
        values = [x, x * (1 + 0.5j), x[:1] * 1j]
        for operation, first, second in program:
            v, other = values[first % len(values)], values[second % len(values)]
            kind, number = operation % 3, operation // 3
            if kind == 0:
                values.append(UNARY[number % len(UNARY)](v))
            elif kind == 1:
                values.append(BINARY[number % len(BINARY)](v, other if other.shape == v.shape else other[0]))
            else:
                values.append(OTHERS[number % len(OTHERS)](v))
        return np.concatenate([part(v) for v in values[-3:] for part in PARTS])

    return fun


programs = st.lists(st.tuples(*[st.integers(0, 400)] * 3), min_size=1, max_size=12)


@pytest.mark.parametrize("method", ["auto", "dp", "tangent", "adjoint"])
@settings(derandomize=True, deadline=None, max_examples=60)
@given(program=programs, size=st.integers(1, 3))
def test_random_programs(method, program, size):
    """autograd is no help: it forgets that a real value has no imaginary part where it is joined."""
    fun, x, h = decoded(program), onp.linspace(0.3, 1.1, size), 1e-6
    with pytest.MonkeyPatch.context() as monkeypatch, onp.errstate(all="ignore"):
        differences = [(fun(x + h * unit) - fun(x - h * unit)) / (2 * h) for unit in onp.eye(size)]
        assume(onp.isfinite(differences).all())
        scale = max(1.0, onp.abs(differences).max())
        found = {}
        for form in ("arrays", "systems", "predicted"):
            with monkeypatch.context() as patch:
                forced(patch, form)
                jac = parallel_jacobian(fun, method=method)
                jac.cache_clear()
                jac(0.9 * x)
                found[form] = jac(x)
        onp.testing.assert_allclose(found["arrays"].T, differences, rtol=0, atol=1e-5 * scale)
        for form in ("systems", "predicted"):
            onp.testing.assert_allclose(found[form], found["arrays"], rtol=0, atol=1e-11 * scale)


def impedance(p):
    """Magnitude and phase of an equivalent circuit at some frequencies."""
    found = []
    for omega in onp.logspace(-1, 3, 20):
        z = p[0] + p[1] / (1 + 1j * omega * p[1] * p[2]) + p[3] * (1j * omega) ** -p[4]
        found += [np.abs(z), np.angle(z)]
    return np.array(found)


def thin_films(d):
    """Transmission of a stack of layers by products of characteristic matrices."""
    found = []
    for wavelength in onp.linspace(0.4, 0.8, 6):
        film = onp.eye(2)
        for k in range(4):
            index = 1.4 + 0.6 * (k % 2)
            phase = 2 * onp.pi * index * d[k] / wavelength
            layer = np.array(
                [
                    [np.cos(phase), 1j * np.sin(phase) / index],
                    [1j * index * np.sin(phase), np.cos(phase)],
                ]
            )
            film = np.dot(film, layer)
        found.append(np.abs(2.0 / (film[0, 0] + film[0, 1] + film[1, 0] + film[1, 1])) ** 2)
    return np.array(found)


def network(p):
    """Voltages of a circuit with three nodes: a small linear system for each frequency."""
    found = []
    for omega in onp.logspace(0, 2, 8):
        y = [1 / p[0] + 1j * omega * p[1], 1 / (p[2] + 1j * omega * p[3]), 1j * omega * p[4]]
        admittances = np.array(
            [[y[0] + y[1], -y[1], 0j], [-y[1], y[1] + y[2], -y[2]], [0j, -y[2], y[2] + 0.1]]
        )
        found.append(np.abs(np.linalg.solve(admittances, onp.array([1.0, 0.0, 0.0]))))
    return np.concatenate(found)


@pytest.mark.parametrize("fun", [impedance, thin_films, network])
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_loops_over_complex_numbers_are_systems(fun, method):
    jac, p = parallel_jacobian(fun, method=method), onp.array([0.1, 0.2, 0.3, 0.15, 0.25])
    for point in (p, 1.1 * p):
        expected = jacobian(fun)(point)
        onp.testing.assert_allclose(jac(point), expected, rtol=0, atol=1e-12 * onp.abs(expected).max())
    assert [type(found) for found in jac.plan(p).sweeps] == [ScalarSweep]
    assert jac.cache_info().misses == 1


def narrow_spectrum(x):
    """A function whose values narrow to two complex numbers."""
    z = np.fft.fft(np.tanh(x))[1:3] * np.exp(1j * np.real(np.fft.fft(np.sin(x))[1:3]))
    for _ in range(3):
        z = z * np.conj(z[::-1]) / (2.0 + np.abs(z))
    return np.abs(np.fft.ifft(np.outer(z, onp.arange(40.0)).ravel()))


@pytest.mark.parametrize("form", ["predicted", "systems", "arrays"])
def test_tapes_are_cut_where_two_complex_numbers_are_four_elements(form, monkeypatch):
    forced(monkeypatch, form)
    x = onp.linspace(-1.0, 2.0, 48)
    jac, expected = parallel_jacobian(narrow_spectrum, cost="fma"), jacobian(narrow_spectrum)(x)
    onp.testing.assert_allclose(jac(x), expected, rtol=0, atol=1e-12 * onp.abs(expected).max())
    plan = jac.plan(x)
    tape = jac.tape(x)
    narrow = [separator for separator in plan.separators if separator.width == 4]
    assert narrow
    assert all(onp.iscomplexobj(tape[entry].value) for entry in narrow[0].vertices)
    swept = [found for found in plan.sweeps if found is not None]
    if form == "arrays":
        assert {type(found) for found in swept} == {ArraySweep}


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_a_memory_limit_takes_complex_directions_in_blocks(method):
    x = onp.linspace(-1.0, 2.0, 48)
    plan = parallel_jacobian(narrow_spectrum, method=method).plan(x)
    least = max(found.least_bytes for found in plan.sweeps if found is not None)
    jac = parallel_jacobian(narrow_spectrum, method=method, memory_limit=3 * least)
    onp.testing.assert_allclose(jac(x), jacobian(narrow_spectrum)(x), rtol=1e-11, atol=1e-12)


def test_blocks_need_not_reach_all_complex_values_of_a_cut():
    tape = record(lambda x: np.real(np.exp(x * 1j) * np.cumsum(x * LOAD)), onp.linspace(0.1, 1.0, 3))
    facts = facts_of(tape)
    (first, second), (of_first, of_second) = (1, 3), (2, 4)
    assert [tape[of_first].parents, tape[of_second].parents] == [(first,), (second,)]
    chunk = Chunk((first, second), (of_first, of_second), onp.array([of_first, of_second]), 12, 12, 12)
    for adjoint_mode in (False, True):
        sweep = compile_array_sweep(tape, facts, chunk, 5, adjoint_mode=adjoint_mode)
        onp.testing.assert_array_equal(sweep.run(tape, None, 2), sweep.run(tape, onp.eye(12)))


@pytest.mark.parametrize("form", ["systems", "arrays"])
def test_constants_in_single_precision_cost_no_digits(form, monkeypatch):
    forced(monkeypatch, form)
    load = onp.complex64(3.3 + 0.7j)
    x = onp.linspace(0.3, 1.1, 5)

    def fun(x):
        return np.abs(x * (1 + 1j) / load)

    onp.testing.assert_allclose(parallel_jacobian(fun)(x), jacobian(fun)(x), rtol=1e-14)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_cholesky_factors_of_hermitian_matrices_beyond_autograd(method):
    """autograd's rule transposes without conjugating."""
    stack = onp.random.default_rng(3).normal(size=(2, 3, 3, 2)) @ [1.0, 1j]

    def fun(x):
        roots = stack + np.reshape(x, (3, 3))
        factors = np.linalg.cholesky(np.matmul(roots, np.conj(np.swapaxes(roots, 1, 2))) + 2.0 * onp.eye(3))
        return np.ravel(np.real(factors) + 2.0 * np.imag(factors))

    x = onp.linspace(-1.0, 1.0, 9)
    expected = onp.stack([(fun(x + h) - fun(x - h)) / 2e-6 for h in 1e-6 * onp.eye(9)], axis=1)
    onp.testing.assert_allclose(parallel_jacobian(fun, method=method)(x), expected, rtol=1e-7, atol=1e-8)


FACTOR, ORDER = onp.array([1.0 + 2.0j, 3.0 - 1.0j]), onp.array([1, 0])


@primitive
def reordered(z):
    return (FACTOR * z[ORDER]).astype(z.dtype)


def _ordered_back(G):
    """Make arrays of the type of what is given, which must be complex."""
    R = onp.zeros_like(G)
    R[..., ORDER] = (G * FACTOR).astype(R.dtype)
    return R


def _to_order(G):
    R = onp.zeros_like(G)
    R[...] = (FACTOR * G[..., ORDER]).astype(R.dtype)
    return R


@primitive
def exponential(z):
    return onp.exp(z)


def _times(G, factor):
    G *= factor
    return G


@pytest.fixture(params=["loops", "vector rules"])
def complex_primitives(request, monkeypatch):
    defvjp(reordered, lambda ans, z: _ordered_back)
    defjvp(reordered, lambda g, ans, z: _to_order(g))
    defvjp(exponential, lambda ans, z: lambda g: _times(g, ans))
    defjvp(exponential, lambda g, ans, z: _times(g, ans))
    monkeypatch.setattr(registry, "_rules", dict(registry.registered()))
    if request.param == "vector rules":
        defvector(
            reordered,
            tangents=[lambda T, ans, z: _to_order(T)],
            adjoints=[lambda A, ans, z: _ordered_back(A)],
        )
        times = [lambda G, ans, z: _times(G, ans)]
        defvector(exponential, tangents=times, adjoints=times)


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("complex_primitives")
@pytest.mark.parametrize("dtype", [onp.complex128, onp.complex64])
@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("form", ["auto", "arrays", "systems"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda z: np.real(reordered(np.exp(1j * z))),
        lambda z: np.real(reordered(z + 0j)),
        lambda z: np.imag(reordered(np.array([z[0], z[1]]))),
        lambda z: np.real(exponential(1j * z)),
        lambda z: np.real(exponential(z)) * np.real(z),
        lambda z: np.real(np.concatenate([exponential(1j * z[:1]), z])),
        lambda z: np.real(exponential(1j * z[0]) * np.abs(z)),
    ],
)
def test_users_rules_of_complex_values_get_complex_directions(monkeypatch, fun, form, method, dtype):
    forced(monkeypatch, form)

    def of_reals(x):
        return fun(x.astype(dtype))

    jac, x = parallel_jacobian(of_reals, method=method), onp.array([0.5, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = jacobian(of_reals)(x)
    for _ in range(2):
        onp.testing.assert_allclose(jac(x), expected, rtol=0, atol=1e-6 if dtype == onp.complex64 else 1e-14)
