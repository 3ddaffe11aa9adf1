"""Random programs of many primitives, heavy in fan-out and fan-in: their Jacobians equal those of autograd.

A program is a list of steps; each takes operands from the values so far, so that values are read several
times, also by one operation. All values have one of three shapes that broadcast together.
"""

import autograd
import autograd.numpy as anp
import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tapesplit import parallel_jacobian

NUMBER, VECTOR, MATRIX = (), (3,), (2, 3)
MASK = np.array([True, False, True])

ANY = {
    "sin": anp.sin,
    "cos": anp.cos,
    "tanh": anp.tanh,
    "arctan": anp.arctan,
    "exp": lambda x: anp.exp(-(x**2)),
    "log": lambda x: anp.log(1.5 + anp.sin(x)),
    "sqrt": lambda x: anp.sqrt(1.0 + x**2),
    "square": lambda x: anp.square(x) / 2,
    "abs": anp.abs,
    "negative": lambda x: -x,
    "reciprocal": lambda x: 1.0 / (2.0 + anp.cos(x)),
    "clip": lambda x: anp.clip(x, -0.7, 0.7),
    "complex": lambda x: anp.abs(anp.exp(1j * x) + anp.conj(x * (1 + 1j))),
    "angle": lambda x: anp.angle(2.0 + 1j * x) + anp.imag(x * 1j),
    "relu": lambda x: anp.where(x > 0, x, 0.1 * x),
    "ravel": lambda x: anp.reshape(anp.ravel(x)[::-1], anp.shape(x)),
    "roll": lambda x: anp.roll(x, 1),
    "total": anp.sum,
    "mean": anp.mean,
    "largest": anp.max,
    "spread": anp.std,
    "norm": lambda x: anp.linalg.norm(1.0 + anp.ravel(x)),
    "pick": lambda x: anp.ravel(x)[-1],
}
VECTORS = {
    "cumsum": anp.cumsum,
    "sort": anp.sort,
    "repeated index": lambda x: x[[0, 0, 2]],
    "mask": lambda x: anp.concatenate([x[MASK], x[~MASK]]),
    "product": anp.prod,
    "stack": lambda x: anp.stack([x, x[::-1]]),
    "tile": lambda x: anp.tile(x, (2, 1)),
    "scalars": lambda x: anp.array([x[0] * x[1], x[2], anp.sin(x[0])]),
    "pad": lambda x: anp.pad(x, 1, "constant")[:3],
    "fft": lambda x: anp.real(anp.fft.fft(x)) / 3,
    "inverse": lambda x: anp.diag(anp.linalg.inv(3.0 * anp.eye(3) + anp.outer(anp.tanh(x), anp.tanh(x)))),
    "determinant": lambda x: anp.linalg.slogdet(3.0 * anp.eye(3) + anp.outer(anp.tanh(x), anp.tanh(x)))[1],
    "eigenvalues": lambda x: anp.linalg.eigh(anp.diag(anp.array([0.0, 3.0, 9.0])) + anp.tanh(x))[0],
}
MATRICES = {
    "column sums": lambda x: anp.sum(x, axis=0),
    "column means": lambda x: anp.mean(x, axis=0, keepdims=True) + 0.0 * x,
    "largest in columns": lambda x: anp.max(x, axis=0),
    "row": lambda x: x[1],
    "reverse": lambda x: x[::-1, ::-1],
    "transpose": lambda x: anp.reshape(anp.transpose(x), (2, 3)),
    "split": lambda x: anp.vstack(anp.split(x, 2)[::-1]),
    "gram": lambda x: anp.einsum("ij,ik->jk", x, x)[:2] / 3,
    "diagonal": lambda x: anp.diagonal(anp.matmul(anp.swapaxes(x, 0, 1), x), 0, -1, -2),
    "triangle": lambda x: anp.tril(x) + anp.triu(x, 1),
}
PAIRS = {
    "add": anp.add,
    "subtract": anp.subtract,
    "multiply": lambda x, y: x * y / 2,
    "divide": lambda x, y: x / (2.0 + anp.sin(y)),
    "power": lambda x, y: (1.2 + anp.sin(x)) ** anp.tanh(y),
    "maximum": anp.maximum,
    "minimum": anp.minimum,
    "where": lambda x, y: anp.where(x > y, x + 0.0 * y, y + 0.0 * x),
    "arctan2": lambda x, y: anp.arctan2(x, 2.0 + y**2),
    "logaddexp": anp.logaddexp,
    "hypot": lambda x, y: anp.hypot(1.0 + x**2, y),
    "products": lambda x, y: anp.dot(anp.ravel(x)[:1], anp.ravel(y)[-1:]),
}
VECTOR_PAIRS = {
    "dot": anp.dot,
    "inner": anp.inner,
    "outer": lambda x, y: anp.outer(x, y)[:2],
    "cross": anp.cross,
    "tensordot": lambda x, y: anp.tensordot(x, y, 1),
    "kron": lambda x, y: anp.kron(x, y)[2:8:2],
    "solve": lambda x, y: anp.linalg.solve(4.0 * anp.eye(3) + anp.outer(anp.tanh(x), anp.tanh(y)), y),
}


def operations(*shapes):
    """Operations that take operands of these shapes."""
    if len(shapes) == 1:
        return {**ANY, **{VECTOR: VECTORS, MATRIX: MATRICES}.get(shapes[0], {})}
    return {**PAIRS, **VECTOR_PAIRS} if shapes == (VECTOR, VECTOR) else PAIRS


@st.composite
def programs(draw):
    """Steps ``(name, positions of the operands)``; shapes are followed by running each step."""
    values = [np.array([0.3, -0.5, 0.8])]
    steps = []
    for _ in range(draw(st.integers(3, 12))):
        operands = draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=2))
        shapes = tuple(np.shape(values[i]) for i in operands)
        name = draw(st.sampled_from(sorted(operations(*shapes))))
        value = operations(*shapes)[name](*(values[i] for i in operands))
        steps.append((name, tuple(operands)))
        values.append(value)
        assume(np.all(np.abs(value) < 1e3))
    return tuple(steps)


def run(steps):
    """Make the function of a program: all values that no step reads, and the last ones, as one vector."""

    def function(x):
        values = [x]
        for name, operands in steps:
            shapes = tuple(anp.shape(values[i]) for i in operands)
            values.append(operations(*shapes)[name](*(values[i] for i in operands)))
        read = {i for _, operands in steps for i in operands}
        unread = [anp.ravel(v) for i, v in enumerate(values) if i not in read or i >= len(values) - 2]
        return anp.concatenate(unread)

    return function


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs())
def test_jacobians_of_random_programs(steps):
    function, x = run(steps), np.array([0.3, -0.5, 0.8])
    with np.errstate(all="ignore"):
        expected = autograd.jacobian(function)(x)
        assume(np.isfinite(expected).all())
        for method in ("auto", "tangent", "adjoint"):
            found = parallel_jacobian(function, method=method)(x)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * max(1.0, np.abs(expected).max()))


def test_programs_mix_many_primitives():
    assert sum(map(len, (ANY, VECTORS, MATRICES, PAIRS, VECTOR_PAIRS))) >= 60


PARTS = st.one_of(
    st.slices(7),
    st.integers(-7, 6),
    st.lists(st.integers(-7, 6), max_size=9).map(lambda places: np.array(places, dtype=int)),
)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    parts=st.lists(st.tuples(st.integers(0, 2), PARTS), min_size=1, max_size=8),
    join=st.sampled_from(["concatenate", "hstack"]),
    dense=st.booleans(),
    is_complex=st.booleans(),
)
def test_many_parts_of_a_few_values_are_taken_and_joined(parts, join, dense, is_complex):
    def fun(x):
        y = np.arange(1.0, 50.0).reshape(7, 7) / 50 @ x if dense else x * 2.0
        values = [x, y, anp.tanh(y)]
        if is_complex:
            values = [1j * value for value in values]
        taken = [anp.atleast_1d(values[number][part]) for number, part in parts]
        joined = getattr(anp, join)(taken)
        return anp.real(joined * (1 - 1j)) * anp.linalg.norm(x)  # the norm has no scalar form

    x = np.linspace(0.2, 0.8, 7)
    assume(fun(x).size)
    expected = autograd.jacobian(fun)(x)
    for method in ("tangent", "adjoint"):
        jacobian = parallel_jacobian(fun, method=method)(x)
        np.testing.assert_allclose(jacobian, expected, rtol=1e-13, atol=1e-13)
