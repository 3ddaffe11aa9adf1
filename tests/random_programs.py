"""Random programs of autograd.numpy operations, decoded from lists of small integers.

Each instruction ``(operation, a, b, c)`` names an operation and, modulo what is possible, its operands and
details, so any list of integers is a program, and a shorter list is a simpler one. Values are used again and
again: fan-out and fan-in are the rule.

A long random run: ``python tests/random_programs.py --programs 2000 --seed 1``
"""

import argparse
import sys
import warnings

import autograd.numpy as np
import numpy as onp
from autograd import checkpoint, grad, jacobian
from autograd.builtins import tuple as atuple
from autograd.extend import defvjp, primitive
from autograd.scipy.signal import convolve
from autograd.scipy.special import expit, gammaln, logsumexp

from tapesplit import parallel_jacobian
from tapesplit.recording.tracing import tracing_lock

LARGEST = 36
"""Most elements of a value."""


@primitive
def bump(x):
    """A primitive of the user with a VJP only."""
    return onp.exp(-x * x)


defvjp(bump, lambda ans, x: lambda g: -2.0 * x * ans * g)

UNARY = [
    np.sin,
    np.cos,
    np.tanh,
    np.arctan,
    lambda x: np.sinc(x + 2.3),
    np.negative,
    np.square,
    np.abs,
    np.expm1,
    np.arcsinh,
    expit,
    bump,
    lambda x: np.exp(-x),
    lambda x: np.log(1.5 + x * x),
    lambda x: np.sqrt(1.0 + x**2),
    lambda x: np.log1p(x**2),
    lambda x: 1.0 / (2.0 + np.cos(x)),
    lambda x: x**3,
    lambda x: 2.0**x,
    lambda x: np.clip(x, -0.5, 0.8),
    lambda x: gammaln(2.0 + x * x),
    lambda x: np.sign(x) * x,
    lambda x: np.where(x > 0.1, x, 0.3 * x),
    lambda x: np.real(np.exp(1j * x) * (x + 2.0j)),
    lambda x: np.abs(x + 0.5j),
    checkpoint(lambda y: np.sin(y) * y),
    grad(lambda y: np.sum(np.tanh(y) ** 2)),
]

BINARY = [
    np.add,
    np.subtract,
    np.multiply,
    np.maximum,
    np.minimum,
    np.logaddexp,
    lambda x, y: x / (1.5 + y * y),
    lambda x, y: (1.1 + x * x) ** y,
    lambda x, y: np.arctan2(x, 2.0 + y * y),
    lambda x, y: np.hypot(x, 1.0 + y * y),
    lambda x, y: np.where(np.sin(5.0 * x) > y, x + 0.0 * y, y + 0.0 * x),  # autograd does not broadcast here
    lambda x, y: atuple((x, y))[1] * x,
    lambda x, y: grad(lambda z: np.sum(z * z * y))(x),
]

REDUCTIONS = [
    np.sum,
    np.mean,
    np.max,
    np.min,
    np.prod,
    np.var,
    np.std,
    logsumexp,
]

MATRIX = [
    lambda m: np.linalg.solve(m @ m.T + 2.0 * onp.eye(len(m)), m),
    lambda m: np.linalg.inv(m @ m.T + 2.0 * onp.eye(len(m))),
    lambda m: np.linalg.det(m + 5.0 * onp.eye(len(m))) * np.tril(m),
    lambda m: np.linalg.cholesky(m @ m.T + 2.0 * onp.eye(len(m))),
    lambda m: np.trace(m) * np.diag(m),
    lambda m: np.diag(np.diag(m)) + np.triu(m),
    lambda m: np.einsum("ij,kj->ki", m, m),
    lambda m: np.einsum("ij,jk,ki->i", m, np.sin(m), m),
    lambda m: np.einsum(m, [0, 1], m, [1, 2], [2, 0]) + np.einsum("ij->ji", m),
]


def _unary(values, a, b, _c):
    return (a % len(values),), UNARY[b % len(UNARY)]


def _constant(values, a, b, c):
    shape = values[a % len(values)].shape
    constant = onp.cos(onp.arange(b, b + onp.prod(shape, dtype=int))).reshape(shape)
    fun = (lambda x: constant * x, lambda x: x + constant, lambda x: constant - 0.5 * x)[c % 3]
    return (a % len(values),), fun


def _binary(values, a, b, c):
    i = a % len(values)
    partners = [j for j, v in enumerate(values) if _broadcast_size(values[i], v)]
    return (i, partners[c % len(partners)]), BINARY[b % len(BINARY)]


def _broadcast_size(x, y):
    try:
        return onp.broadcast(x, y).size <= LARGEST
    except ValueError:
        return False


def _reduction(values, a, b, c):
    i = a % len(values)
    axes = [None, *range(values[i].ndim)]
    axis, keep = axes[c % len(axes)], bool(c // len(axes) % 2)
    if not values[i].size:
        return None
    fun = REDUCTIONS[b % len(REDUCTIONS)]
    # Of a number it has shape (1,), and so have autograd's adjoints of it, which spoil those behind.
    keep = keep and not (fun is logsumexp and not values[i].ndim)
    return (i,), lambda x: fun(x, axis=axis, keepdims=keep)


def _cumulative(values, a, b, _c):
    i = _at_least(values, a, 1)
    axis = b % values[i].ndim
    return (i,), lambda x: np.cumsum(x, axis=axis)


def _linear(values, a, b, c):
    i = _at_least(values, a, 1)
    shape, size = values[i].shape, values[i].size
    axis = c % len(shape)
    kernel = onp.cos(onp.arange(2.0 ** len(shape)) + c).reshape((2,) * len(shape))
    links = onp.zeros((64, size))
    links[onp.arange(64), onp.arange(b, b + 64) % size] = onp.cos(onp.arange(64.0) + c)
    factors = onp.sin(onp.arange(size) + b).reshape(shape)
    ways = [
        lambda x: np.gradient(x, axis=axis) if shape[axis] > 2 else x,
        lambda x: convolve(x, kernel, mode="same"),
        lambda x: np.reshape(np.dot(links.T, np.tanh(np.dot(links, np.ravel(x)))), shape),
        lambda x: np.einsum(
            f"{_AXES[x.ndim]},{_AXES[x.ndim]},{_AXES[x.ndim]}->{_AXES[x.ndim]}", x, factors, x
        ),
        lambda x: np.einsum(f"{_AXES[x.ndim]},{_AXES[x.ndim]}->{_AXES[x.ndim][::-1]}", factors, x),
    ]
    return (i,), ways[b % len(ways)]


_AXES = {1: "i", 2: "ij", 3: "ijk", 4: "ijkl"}


def _at_least(values, a, ndim):
    candidates = [i for i, v in enumerate(values) if v.ndim >= ndim and v.size]
    return candidates[a % len(candidates)]  # the input is a vector


def _move(values, a, b, c):
    i = _at_least(values, a, 1)
    shape = values[i].shape
    axis, n = c % len(shape), shape[c % len(shape)]
    moves = [
        lambda x: np.reshape(x, (-1,)),
        np.transpose,
        lambda x: np.roll(x, c, axis),
        lambda x: x[(slice(None),) * axis + (slice(None, None, -1),)],
        lambda x: np.expand_dims(x, axis),
        lambda x: x[: max(n // 2, 1)],
        lambda x: x[::-2],
        lambda x: x[c % len(x)],
        lambda x: x[onp.array([0, -1, 0, c % len(x)])],
        lambda x: x[..., None],
        lambda x: x[onp.arange(len(x)) % 2 == 0],
        lambda x: np.repeat(x, 2, axis=axis),
        lambda x: np.concatenate([x, x[:1], 2.0 * x], axis=0),
        lambda x: np.stack([x, np.sin(x)], axis=axis),
        lambda x: np.array_split(x, 2)[c % 2],
        lambda x: np.sort(x, axis=axis),
        lambda x: np.swapaxes(x, 0, -1),
        lambda x: np.real(np.fft.fft(x, axis=axis)),
        lambda x: np.array([y * x[0] for y in x]),
        lambda x: np.tile(x, (2,) + (1,) * (len(shape) - 1)),  # autograd is wrong for fewer repeats than axes
        lambda x: np.pad(x, 1, mode="constant"),
        np.atleast_2d,
        lambda x: x * onp.ones((2, *shape)),
    ]
    return (i,), moves[b % len(moves)]


def _product(values, a, b, c):
    i = _at_least(values, a, 1)
    x = values[i]
    inner = [
        j for j, v in enumerate(values) if v.ndim in (1, 2) and v.shape[0] == x.shape[-1] and x.ndim <= 2
    ]
    vectors = [j for j, v in enumerate(values) if v.ndim == 1 and v.size * x.size <= LARGEST and x.ndim == 1]
    kind = b % 6
    if kind < 3 and inner:
        return (i, inner[c % len(inner)]), (np.dot, np.matmul, lambda p, q: np.tensordot(p, q, 1))[kind]
    if kind < 5 and vectors:
        return (i, vectors[c % len(vectors)]), (np.outer, np.kron)[kind - 3]
    same = [j for j, v in enumerate(values) if v.shape == x.shape]
    return (i, same[c % len(same)]), lambda p, q: np.einsum(_LETTERS[p.ndim], p, q)


_LETTERS = {1: "i,i->", 2: "ij,ij->i", 3: "ijk,ijk->ki", 4: "ijkl,ijkl->jk"}


def _matrix(values, a, b, _c):
    squares = [i for i, v in enumerate(values) if v.ndim == 2 and v.shape[0] == v.shape[1] and v.size]
    return ((squares[a % len(squares)],), MATRIX[b % len(MATRIX)]) if squares else None


def _element(values, a, b, c):
    i = _at_least(values, a, 1)
    index = tuple(b % n for n in values[i].shape)
    j = c % len(values)
    return (i, j), lambda x, y: x[index] * y + x[index]


OPERATIONS = [
    _unary,
    _binary,
    _binary,
    _move,
    _unary,
    _product,
    _reduction,
    _constant,
    _element,
    _cumulative,
    _matrix,
    _linear,
]


def decode(instructions, size):
    """Return the function that a list of instructions describes, and its input."""
    x0 = 0.9 * onp.sin(1.7 * onp.arange(1, size + 1)) + 0.05
    values, steps = [x0], []
    for operation, a, b, c in instructions:
        choice = OPERATIONS[operation % len(OPERATIONS)](values, a, b, c)
        if choice is None:
            continue
        operands, fun = choice
        with onp.errstate(all="ignore"):
            value = onp.asarray(fun(*[values[i] for i in operands]))
        if value.size > LARGEST or value.ndim > 4 or not onp.isfinite(value).all():
            continue
        squash = bool(value.size) and onp.abs(value).max() > 4.0
        values.append(onp.tanh(value) if squash else value)
        steps.append((operands, fun, squash))

    def program(x):
        made = [x]
        for operands, fun, squash in steps:
            value = fun(*[made[i] for i in operands])
            made.append(np.tanh(value) if squash else value)
        return np.concatenate([np.ravel(value) for value in made[-3:]])

    return program, x0


def expected(instructions, size):
    """Return a program, its input and autograd's Jacobian; None where autograd raises or gives NaN."""
    program, x = decode(instructions, size)
    try:
        with onp.errstate(all="ignore"), warnings.catch_warnings(), tracing_lock():
            warnings.simplefilter("ignore")
            want = jacobian(program)(x)
    except (AssertionError, IndexError, NotImplementedError, TypeError, ValueError, onp.linalg.LinAlgError):
        return None
    return (program, x, want) if onp.isfinite(want).all() else None


def largest_difference(program, x, want, **options):
    """Return the largest difference to a Jacobian, relative to the largest entry."""
    with onp.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = parallel_jacobian(program, **options)(x)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    return onp.abs(got - want).max(initial=0.0) / max(onp.abs(want).max(initial=0.0), 1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--instructions", type=int, default=40)
    options = parser.parse_args()
    rng = onp.random.default_rng(options.seed)
    worst, failures, compared = 0.0, 0, 0
    for number in range(options.programs):
        instructions = rng.integers(0, 1000, (rng.integers(1, options.instructions + 1), 4)).tolist()
        size = int(rng.integers(1, 7))
        problem = expected(instructions, size)
        compared += problem is not None
        for method in ("auto", "tangent", "adjoint") if problem else ():
            try:
                difference = largest_difference(*problem, method=method, machines=1 + number % 3)
            except Exception as error:  # noqa: BLE001 (a run reports every failure and goes on)
                print(f"program {number}, {method}: {type(error).__name__}: {error}")
                difference = onp.inf
            worst = max(worst, difference)
            if not difference < 1e-10:
                failures += 1
                print(f"program {number}, {method}: differs by {difference:.1e}")
                print(f"  decode({instructions}, {size})")
    print(
        f"{options.programs} programs, {compared} compared, {failures} failures, "
        f"worst relative difference {worst:.1e}"
    )
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
