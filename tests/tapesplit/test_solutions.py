"""Solutions of linear systems: matrices are factored once in a sweep, whatever their form."""

from contextlib import nullcontext
from itertools import product

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian

from tapesplit import execute, parallel_jacobian, record
from tapesplit.rules import solutions
from tapesplit.rules.solutions import lu_bytes, lu_kept, solve_by_triangle, solve_columns

RANDOM = np.random.default_rng(5)


def matrix(*shape: int, dtype: type = float) -> np.ndarray:
    return (RANDOM.standard_normal(shape) + 4.0 * np.eye(shape[-1])).astype(dtype)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sides", [(7, 3, 2), (7, 3, 1), (7, 5, 3, 2), (0, 3, 2), (7, 3, 0), (2, 3, 70)])
@pytest.mark.parametrize("dtypes", [(float, float), (np.float32,) * 2, (int, float), (float, complex)])
@pytest.mark.parametrize("stack", [(), (5,)])
def test_every_side_is_solved_for(
    transposed: bool, sides: tuple[int, ...], dtypes: tuple[type, type], stack: tuple[int, ...]
) -> None:
    a, B = matrix(*stack, 3, 3, dtype=dtypes[0]), RANDOM.standard_normal(sides).astype(dtypes[1])
    if stack and B.ndim == 3:
        B = np.repeat(B[:, None], 5, axis=1)
    for order, context in product((np.ascontiguousarray, np.asfortranarray), (lu_kept, nullcontext)):
        with context():
            X = solve_columns(order(a), order(B), transposed=transposed)
        assert X.shape == B.shape
        assert X.dtype == np.linalg.solve(a, B).dtype
        np.testing.assert_allclose((a.mT if transposed else a) @ X, B, atol=2e-6)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    "sides", [(7, 9), (1, 9), (7, 9, 2), (1, 9, 5), (3, 9, 70), (2, 5, 9, 70), (2, 5, 9, 1), (3, 2, 70)]
)
def test_every_side_is_solved_for_by_a_triangle(
    sides: tuple[int, ...], *, lower: bool, transposed: bool
) -> None:
    n = sides[1] if len(sides) == 2 else sides[-2]
    a, B = matrix(n, n), RANDOM.standard_normal(sides)
    triangle = np.tril(a) if lower else np.triu(a)
    kept = B.copy()
    for order, order_of_sides in product((np.ascontiguousarray, np.asfortranarray), repeat=2):
        X = solve_by_triangle(order(a), order_of_sides(B), lower=lower, transposed=transposed)
        columns = X[..., None] if len(sides) == 2 else X
        found = (triangle.T if transposed else triangle) @ columns
        np.testing.assert_allclose(found.reshape(sides), B, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(B, kept)


def test_singular_matrices_raise() -> None:
    for context in (lu_kept, nullcontext):
        with context(), pytest.raises(np.linalg.LinAlgError, match="Singular"):
            solve_columns(np.zeros((2, 2)), np.ones((1, 2, 1)))


def test_matrices_are_factored_once_while_factors_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    factored = []
    factor, solve = solutions._LAPACK["d"]
    counting = {"d": (lambda a: factored.append(a) or factor(a), solve)}
    monkeypatch.setattr(solutions, "_LAPACK", counting)
    a, B = matrix(3, 3), np.ones((2, 3, 1))
    with lu_kept():
        first = solve_columns(a, B)
        assert np.array_equal(solve_columns(a, B), first)
        solve_columns(a, B, transposed=True)
        assert len(factored) == 1
        others = [matrix(3, 3) for _ in range(solutions._MOST_KEPT)]
        for other in others:
            solve_columns(other, B)
        solve_columns(a, B)  # whose factors have made place for the others'
        assert len(factored) == 2 + len(others)
    a += 1.0
    with lu_kept():  # nothing is known of the last context
        np.testing.assert_allclose(a @ solve_columns(a, B)[0], B[0])


@pytest.mark.parametrize("mode", ["tangent", "adjoint"])
def test_loops_with_some_matrices(mode: str) -> None:
    matrices = [matrix(6, 6) for _ in range(7)]

    def implicit(u):
        for step in range(30):
            u = anp.linalg.solve(matrices[step % 3 if step < 20 else step % 7], u + anp.sin(u))
        return u * u

    jac = parallel_jacobian(implicit, method=mode)
    for u in RANDOM.standard_normal((3, 6)):
        np.testing.assert_allclose(jac(u), jacobian(implicit)(u), rtol=1e-10)
        matrices[0] *= 1.1  # seen by the next call, whose structure is the same


def test_kept_factors_are_part_of_the_peak() -> None:
    matrices = [matrix(50, 50) for _ in range(6)]

    def implicit(u):
        for a in (*matrices, *matrices):
            u = anp.linalg.solve(a, anp.sin(u))
        return u[:1]

    jac = parallel_jacobian(implicit, method="adjoint")
    u = RANDOM.standard_normal(50)
    kept = lu_bytes(matrices)
    assert kept == 4 * matrices[0].nbytes
    assert kept < jac.plan(u).peak_bytes < 1.1 * kept
    np.testing.assert_allclose(execute(jac.plan(u), record(implicit, u)), jacobian(implicit)(u), rtol=1e-10)


def test_factors_of_matrices_that_are_gone_are_not_kept():
    with lu_kept():
        for _ in range(9):
            solve_columns(np.asarray([[2.0, 0.0], [1.0, 3.0]]), np.ones((1, 2, 1)))
            assert len(solutions._kept.get()) == 1
        kept = [matrix(2, 2) for _ in range(3)]
        for a in (*kept, *kept):
            solve_columns(a, np.ones((1, 2, 1)))
        assert len(solutions._kept.get()) == 3


@pytest.mark.parametrize("mode", ["tangent", "adjoint"])
def test_no_factors_are_kept_under_a_limit(mode):
    a = matrix(40, 40)

    def implicit(u):
        for _ in range(3):
            u = anp.linalg.solve(a, anp.sin(u))
        return u

    u, free = RANDOM.standard_normal(40), parallel_jacobian(implicit, method=mode)
    limited = parallel_jacobian(implicit, method=mode, memory_limit=6000)
    np.testing.assert_allclose(limited(u), free(u), rtol=1e-9)
    assert limited.plan(u).peak_bytes + a.nbytes < free.plan(u).peak_bytes


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", [np.matrix, np.ndarray.tolist])
@pytest.mark.parametrize("elements", [[[3.7]], [[3.0, 1.0], [0.5, 2.0]]])
def test_matrices_of_other_types(kind, elements):
    a = kind(np.array(elements))

    def implicit(u):
        for _ in range(4):
            u = anp.linalg.solve(a, anp.sin(u))
        return u

    u = np.linspace(0.3, 0.9, len(a))
    for mode in ("auto", "tangent", "adjoint"):
        found = parallel_jacobian(implicit, method=mode)(u)
        np.testing.assert_allclose(found, jacobian(implicit)(u), rtol=1e-12)


def test_a_loop_in_stages_keeps_the_factors_from_stage_to_stage(monkeypatch):
    factored = []
    factor, solve = solutions._LAPACK["d"]
    counting = {"d": (lambda a: factored.append(a) or factor(a), solve)}
    monkeypatch.setattr(solutions, "_LAPACK", counting)
    a = matrix(130, 130)

    def implicit(u):
        for _ in range(4):
            numbers = [u[i] * anp.sin(u[i + 1]) for i in range(40)]
            u = anp.linalg.solve(a, anp.concatenate([anp.array(numbers), u[40:]]))
        return u

    jac = parallel_jacobian(implicit, machines=1)
    u = RANDOM.standard_normal(130)
    assert jac.plan(u).tasks[0].form == "stages"
    expected = jacobian(implicit)(u)
    factored.clear()
    np.testing.assert_allclose(jac(u), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert len(factored) == 1
