"""Little programs for the tests of tapesplit: each meets one thing that a user's function may do.

`PROBLEMS` maps a name to a `Program`; those whose name ends in ``_long`` are chains of many steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import autograd.numpy as np
import autograd.numpy.linalg as npl
import numpy as onp
from autograd import checkpoint, grad, jacobian
from autograd.builtins import dict as adict
from autograd.builtins import list as alist
from autograd.builtins import tuple as atuple
from autograd.extend import defvjp, primitive
from autograd.misc import flatten
from autograd.misc.fixed_points import fixed_point
from autograd.scipy.integrate import odeint
from autograd.scipy.special import expit, gammaln, logsumexp


@dataclass(frozen=True, slots=True)
class Program:
    """A function of autograd.numpy operations and its arguments."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]


PROBLEMS: dict[str, Program] = {}


def program(*args):
    """Register a function with its arguments."""

    def register(fun):
        PROBLEMS[fun.__name__] = Program(fun, args)
        return fun

    return register


def numbers(*shape, seed=0):
    """Draw numbers between 0.2 and 1.2, where every function of the table is smooth."""
    return 0.2 + onp.random.default_rng(seed).random(shape)


WEIGHTS = numbers(4, 4, seed=1)


# Shapes


@program(numbers(5))
def vector_to_vector(x):
    return np.sin(x) * x


@program(numbers(3, 4))
def matrix_to_matrix(x):
    return np.tanh(x @ WEIGHTS)


@program(numbers(2, 3, 2))
def tensor_to_scalar(x):
    return np.sum(x**3)


@program(0.7)
def float_to_scalar(x):
    return x * np.exp(x) + x**2


@program(onp.array(0.7))
def zero_dimensional_input(x):
    return np.array([x, x * x, np.sin(x)])


@program(onp.float64(0.7))
def numpy_number_to_matrix(x):
    return x * WEIGHTS


@program(numbers(4))
def zero_dimensional_output(x):
    return np.reshape(np.sum(x * x), ())


@program(numbers(1))
def size_one_everywhere(x):
    return x * 3.0 + np.sin(x)


@program(onp.zeros((0,)))
def empty_input(x):
    return np.sum(x) * onp.ones(3)


@program(numbers(4))
def empty_output(x):
    return x[:0] * 2.0


@program(numbers(3, 0, 2))
def empty_middle_axis(x):
    return np.sum(x, axis=1)


@program(numbers(4, 3).T)
def fortran_order_input(x):
    return np.reshape(x, (2, 6)) ** 2


@program(numbers(12)[::3])
def strided_input(x):
    return x[::-1] * x


# Data flow


@program(numbers(4))
def input_returned_unchanged(x):
    return x


@program(numbers(4))
def input_and_uses(x):
    return np.concatenate([x, x, 2.0 * x, x * x])


@program(numbers(4))
def one_value_many_uses(x):
    y = np.sin(x)
    return y * y + y / (1.0 + y) - y * x + y


@program(numbers(3))
def doubling_fan_in_long(x):
    for _ in range(30):
        x = 0.5 * (x + x * np.cos(x))
    return x


@program(numbers(6))
def unused_elements(x):
    return x[1:3] * x[2]


@program(numbers(3))
def dead_code(x):
    np.exp(x) * np.sum(x)
    return x[0] * x


@program(numbers(3))
def constant_rows(x):
    return np.array([x[0], 1.0, x[1] * x[2], 0.0])


@program(numbers(3))
def zero_derivative(x):
    return np.floor(x) + x * 0.0 + np.sign(x) * x


@program(numbers(4))
def repeated_operand(x):
    return x * x + np.maximum(x, x) + np.dot(x, x) * x


@program(numbers(4))
def long_thin_waist(x):
    s = np.sum(x * x)
    for _ in range(5):
        s = 0.3 * np.sin(s) + s
    return s * onp.arange(1.0, 5.0)


@program(numbers(6))
def two_strands(x):
    a, b = np.sin(x[:3]), np.exp(x[3:])
    for _ in range(3):
        a, b = np.tanh(a), b * b / (1.0 + b)
    return np.concatenate([a * np.sum(b), b])


@program(numbers(5))
def parameters_in_every_step_long(x):
    y, p = x[:3], x[3:]
    for _ in range(25):
        y = y + 0.1 * (p[0] * np.sin(y) - p[1] * y)
    return y


@program(numbers(8))
def bottlenecks_long(x):
    rng = onp.random.default_rng(5)
    for width in (3, 8, 2, 9, 3):
        x = np.tanh(rng.standard_normal((width, x.shape[0])) @ x)
    return x


# Control flow and containers


@program(numbers(5))
def branches_by_value(x):
    y = x * 2.0 if x[0] > 0.1 else x**2
    while np.sum(y) > 1.0:
        y = 0.7 * y
    return y


@program(numbers(4))
def scalar_loop(x):
    cells = [x[i] for i in range(4)]
    for i in range(12):
        a, b = cells[i % 4], cells[(i + 1) % 4]
        cells[i % 4] = a * b + np.sin(a - b) / (1.0 + b**2)
    return np.array(cells)


@program(numbers(3))
def scalar_recursion(x):
    def power(base, exponent):
        return 1.0 if exponent == 0 else base * power(base, exponent - 1)

    return np.array([power(x[0], 3), power(x[1], 2) * x[2]])


@program(numbers(4))
def python_containers(x):
    state = {"a": [x[0], x[1]], "b": (x[2:], 3.0)}
    state["c"] = state["b"][0] * state["b"][1]
    return np.concatenate([np.array(state["a"]), state["c"]])


@program(numbers(4))
def boxed_list(x):
    values = alist([x, x * 2.0])
    first, second = values
    return first * second


@program(numbers(4))
def boxed_tuple_and_dict(x):
    pair = atuple((np.sin(x), x[:2]))
    table = adict({"u": pair[0], "v": pair[1]})
    return table["u"][:2] * table["v"]


@program(numbers(4))
def flattened_parameters(x):
    flat, unflatten = flatten((onp.zeros((2, 2)), onp.zeros(2)))
    del flat
    matrix, vector = unflatten(np.concatenate([x, x[:2]]))
    return matrix @ vector


@program(numbers(5))
def iterate_over_elements(x):
    total = 0.0
    for element in x:
        total = total + element**2 * np.sin(total)
    return total


@program(numbers(3, 3))
def nested_array_of_scalars(x):
    return np.array([[x[0, 0], x[1, 1] * 2.0], [x[2, 2], x[0, 1] * x[1, 0]]])


@program(numbers(4))
def python_builtins(x):
    a, b, *_ = x
    lowest = np.array(sorted(x))
    return lowest * max(a, b) * sum(x) * len(x) + np.array([y % 0.3 for y in reversed(x)])


@program(numbers(4))
def methods_of_arrays(x):
    y = x.sum() * x.mean() * x.max() * x.cumsum() * x.prod() * x.var() * x.std() * x.min()
    return (y.reshape(2, 2).T @ x.reshape(2, 2)).flatten() * x.shape[0] * x.ndim


@program(numbers(4))
def comparisons_as_numbers(x):
    return (x > 0.5) * x + (x < 0.5) * 2.0 * x + np.select([x > 0.8, x < 0.4], [x * 2.0, x**2])


@program(numbers(4))
def powers(x):
    return x**-1 + x**-2.5 + 2**x + x**x + (x * 0.0) ** 2 + np.abs(x - 0.3)


@program(numbers(4))
def numpys_own_functions(x):
    return onp.sin(x) + onp.exp(-x) * onp.arange(4) / onp.full(4, 100, onp.int8)


# Indexing and movement


@program(numbers(4, 5))
def every_kind_of_index(x):
    return np.concatenate(
        [
            x[1],
            x[:, 2],
            x[1:3, ::2].ravel(),
            x[[0, 2, 2], [1, 1, 1]],
            x[onp.array([[0, 1], [1, 0]])].ravel(),
            x[x > 0.6],
            x[..., -1],
            x[None, 0, ::-1].ravel(),
            x[onp.array([True, False, True, False])].ravel(),
        ]
    )


@program(numbers(2, 3, 4))
def moving_axes(x):
    y = np.transpose(x, (2, 0, 1)) + np.moveaxis(x, 2, 0)
    return np.squeeze(np.expand_dims(np.swapaxes(y, 0, 2), 1), axis=1)


@program(numbers(3, 4))
def stacking(x):
    return np.stack([x, np.roll(x, 1), np.flipud(x)], axis=1) * np.vstack([x[:1], x[1:2], x[2:]])[:, None]


@program(numbers(2, 3))
def padding_and_tiling(x):
    return np.pad(np.tile(x, (2, 1)), 1, mode="constant") + np.sum(np.repeat(x, 2, axis=0))


@program(numbers(3, 3))
def triangles_and_diagonals(x):
    return np.tril(x) @ np.triu(x, 1) + np.diag(np.diag(x)) * np.trace(x)


@program(numbers(9))
def splitting(x):
    a, b, c = np.split(x, 3)
    return a * b + c


# Broadcasting and products


@program(numbers(3, 1))
def broadcasting(x):
    y = x * onp.ones((2, 3, 4)) + x.T[0, 0]
    return y / (1.0 + np.sum(y, axis=(0, 2), keepdims=True))


@program(numbers(4))
def broadcast_fan_in(x):
    return x[:, None] * x[None, :] + x


@program(numbers(3, 4))
def einsum_forms(x):
    return np.einsum("ij,kj->ik", x, x) + np.einsum("ij->i", x) + np.einsum("ij,jk,lk->il", x, WEIGHTS, x)


@program(numbers(4, 4))
def products(x):
    return np.dot(x, x) + x @ WEIGHTS + np.outer(x[0], x[1]) + np.tensordot(x, x, 2) + np.inner(x, x)


@program(numbers(2, 2))
def kronecker(x):
    return np.kron(x, x + 1.0)


@program(numbers(3, 2, 2))
def batched_products(x):
    return np.matmul(x, np.swapaxes(x, 1, 2)) @ x


# Reductions


@program(numbers(3, 4))
def reductions(x):
    return np.array([np.sum(x), np.mean(x), np.prod(x), np.var(x), np.std(x), np.max(x), np.min(x)])


@program(numbers(3, 4))
def reductions_along_axes(x):
    return np.mean(x, axis=0) * np.max(x, axis=0) + np.cumsum(x, axis=1)[-1] + np.std(x, axis=0)


@program(onp.array([1.0, 2.0, 2.0, 0.5]))
def ties(x):
    return np.array([np.max(x), np.max(x[::-1]) * x[0], np.min(x)]) * np.maximum(x[1], x[2])


@program(numbers(6))
def sorting(x):
    return np.sort(x)[::-1] * x


@program(numbers(2, 4))
def softmax(x):
    return np.exp(x - logsumexp(x, axis=1, keepdims=True))


# Linear algebra, special functions, transforms: many have no JVP


@program(numbers(3, 3))
def linear_algebra(x):
    matrix = x @ x.T + 3.0 * onp.eye(3)
    return npl.solve(matrix, x[0]) + npl.inv(matrix)[1] * npl.det(matrix) + npl.slogdet(matrix)[1]


@program(numbers(3, 3))
def factorizations(x):
    matrix = x @ x.T + 3.0 * onp.eye(3)
    return npl.cholesky(matrix) @ npl.eigh(matrix)[1] ** 2 + npl.svd(matrix, compute_uv=False)


@program(numbers(3, 2))
def norms(x):
    return np.array([npl.norm(x), npl.norm(x[0]), npl.norm(x[:, 0])])


@program(numbers(8))
def complex_intermediates(x):
    spectrum = np.fft.fft(x)
    return np.real(np.fft.ifft(spectrum * np.conj(spectrum))) + np.abs(spectrum)


@program(numbers(4))
def complex_numbers_inside(x):
    z = x + 1j * x[::-1]
    return np.concatenate([np.real(z * z), np.imag(np.exp(z)), np.angle(z)])


@program(numbers(4))
def complex_products_of_real_values(x):
    weights = onp.ones((3, 4)) * (1 + 1j)
    z = np.dot(np.conj(x + 1j * x[::-1]), x * 1j + 1)
    return np.concatenate([np.real(weights @ (x * (2 - 1j))), np.imag(weights @ x), np.real(z) * x])


@program(numbers(4))
def complex_movements(x):
    z = np.where(x > 0.5, x * 1j, x + 0j) * (2 - 1j)
    return np.concatenate([np.abs(z[1:3]), np.imag(np.concatenate([z, x + 0j]) ** 2), np.real(np.roll(z, 1))])


@program(numbers(4))
def complex_reductions(x):
    z = x + 1j * x**2
    return np.array([np.var(z), np.real(np.sum(z * z)), np.abs(z[0] * z[1]), np.imag(np.mean(z))])


@program(numbers(4))
def real_complex_real(x):
    return np.real(np.sin(x) * 1j * 1j) + np.cos(x) * np.abs(np.exp(1j * x) * x + np.sum(x))


@program(numbers(4))
def special_functions(x):
    return expit(x) * gammaln(x + 1.0)


# Derivatives and rules of the user


@program(numbers(4))
def gradient_inside(x):
    return grad(lambda y: np.sum(y**3 * x))(x * 2.0)


@program(numbers(3))
def jacobian_inside(x):
    return jacobian(lambda y: y * np.sum(y * x))(x)


@program(numbers(4))
def checkpointed(x):
    return checkpoint(lambda y: np.sin(y) * np.sum(y))(x) * x


@primitive
def _cube(x):
    return x**3


defvjp(_cube, lambda _ans, x: lambda g: g * 3 * x**2)


@program(numbers(4))
def user_primitive(x):
    return _cube(x) * np.sum(_cube(x[:2]))


@primitive
def _strict(x):
    return 2.0 * x


def _strict_vjp(ans, _x):
    def vjp(g):
        assert g.shape == ans.shape
        return 2.0 * g

    return vjp


defvjp(_strict, _strict_vjp)


@program(numbers(3, 2))
def user_primitive_that_checks_shapes(x):
    return np.sin(_strict(x * x))


@program(numbers(3))
def fixed_points(x):
    return fixed_point(lambda a: lambda y: 0.5 * np.cos(y + a), x, onp.zeros(3), _distance, 1e-14)


def _distance(x, y):
    return onp.max(onp.abs(x - y))


@program(numbers(2))
def integrated(x):
    def rate(y, _t, p):
        return np.array([p[0] * y[1], -p[1] * y[0]])

    return odeint(rate, x, onp.linspace(0.0, 0.5, 4), atuple((x,)), rtol=1e-12, atol=1e-12)[-1]
