"""Positions of elements: grids among them, and those that an index points to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

from tapesplit.rules import positions
from tapesplit.rules.moves import IndexMap
from tapesplit.rules.positions import Grid, places
from tapesplit.rules.products import _product_from_left

SHAPES = array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=6)


@st.composite
def indexed_shapes(draw):
    shape = draw(SHAPES)
    return shape, draw(basic_indices(shape, allow_newaxis=False, allow_ellipsis=False))


@given(indexed_shapes())
def test_basic_indices_point_to_grids(indexed):
    shape, index = indexed
    numbers = np.arange(np.prod(shape))
    found = np.ravel(numbers.reshape(shape)[index])
    grid = Grid.of(found)
    assert (grid is None) == (found.size == 0)
    X = np.random.default_rng(0).standard_normal((3, numbers.size))
    for rows in X, X * 1j, X.astype(object), X[::-1], np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]:
        if grid:
            np.testing.assert_array_equal(grid.positions(), found)
            np.testing.assert_array_equal(grid.view(rows).reshape(3, -1), rows[:, found])


@given(st.lists(st.integers(0, 40), max_size=12))
def test_a_grid_has_all_positions(listed):
    grid = Grid.of(np.array(listed, np.intp))
    assert grid is None or grid.positions().tolist() == listed


@given(indexed_shapes())
def test_places_of_large_values_are_found_without_numbering_them(indexed):
    shape, index = indexed
    values = np.zeros(shape)
    expected = places(values, index)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "_MANY", 0)
        found = places(values, index)
    assert found.dtype == np.intp
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["grid", "other order", "neither"])
@pytest.mark.parametrize("size", [30, 1200])
@pytest.mark.parametrize("k", [1, 3, 9])
def test_directions_move_to_and_from_a_grid(kind, size, k):
    rng = np.random.default_rng(0)
    inner = np.arange(size).reshape(-1, 6)[1:-1, 1:4]
    sources = {
        "grid": inner.ravel(),
        "other order": inner[::-1].T.ravel(),
        "neither": rng.permutation(size)[: inner.size],
    }[kind]
    assert (Grid.of(sources) is None) == (kind == "neither")
    targets = np.sort(rng.permutation(2 * sources.size)[: sources.size])
    moves = IndexMap(targets, sources, 2 * sources.size, size)
    X, Y = rng.standard_normal((k, size)), rng.standard_normal((k, 2 * sources.size))
    gathered, scattered = np.zeros_like(Y), np.zeros_like(X)
    gathered[:, targets] = X[:, sources]
    scattered[:, sources] = Y[:, targets]
    np.testing.assert_array_equal(moves.gather(X), gathered)
    np.testing.assert_array_equal(moves.scatter(Y), scattered)
    added = X.copy()
    moves.add(Y, added)
    np.testing.assert_array_equal(added, X + scattered)


@pytest.mark.parametrize("p", [1, 2, 4, 5])
@pytest.mark.parametrize("shape", [(7, 5), (300, 400)])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_a_matrix_times_a_batch_of_narrow_ones(p, shape, is_transposed):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape[::-1]).T if is_transposed else rng.standard_normal(shape)
    X = rng.standard_normal((3, shape[1], p))
    found = _product_from_left(a, X)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, np.matmul(a, X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shift", [1, -300, 700])
@pytest.mark.parametrize("k", [1, 3])
def test_rolls_of_long_values_move_as_slices(shift, k):
    size = 1200
    sources = np.roll(np.arange(size), shift)
    moves = IndexMap.of_sources(sources, size)
    assert len(moves._runs) == 2
    X = np.random.default_rng(0).standard_normal((k, size))
    Y = X[:, ::-1].copy()
    np.testing.assert_array_equal(moves.gather(X), X[:, sources])
    expected = np.zeros_like(X)
    expected[:, sources] = Y
    np.testing.assert_array_equal(moves.scatter(Y), expected)
    added = X.copy()
    moves.add(Y, added)
    np.testing.assert_array_equal(added, X + expected)
