"""Solutions of linear systems: matrices are factored once in a sweep, whatever their form."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian

from tapesplit import execute, parallel_jacobian, record
from tapesplit.rules import solutions
from tapesplit.rules.solutions import lu_bytes, lu_kept, solve_columns

RANDOM = np.random.default_rng(5)


def matrix(*shape: int, dtype: type = float) -> np.ndarray:
    return (RANDOM.standard_normal(shape) + 4.0 * np.eye(shape[-1])).astype(dtype)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sides", [(7, 3, 2), (7, 3, 1), (7, 5, 3, 2), (0, 3, 2), (7, 3, 0)])
@pytest.mark.parametrize("dtypes", [(float, float), (np.float32,) * 2, (int, float), (float, complex)])
@pytest.mark.parametrize("stack", [(), (5,)])
def test_every_side_is_solved_for(
    transposed: bool, sides: tuple[int, ...], dtypes: tuple[type, type], stack: tuple[int, ...]
) -> None:
    a, B = matrix(*stack, 3, 3, dtype=dtypes[0]), RANDOM.standard_normal(sides).astype(dtypes[1])
    if stack and B.ndim == 3:
        B = np.repeat(B[:, None], 5, axis=1)
    for order in (np.ascontiguousarray, np.asfortranarray):
        X = solve_columns(order(a), order(B), transposed=transposed)
        assert X.shape == B.shape
        assert X.dtype == np.linalg.solve(a, B).dtype
        np.testing.assert_allclose((a.mT if transposed else a) @ X, B, atol=2e-6)


def test_singular_matrices_raise() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
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
