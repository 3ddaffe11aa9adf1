"""Indices that change from call to call: one plan reads them from each tape."""

import pickle

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian

from tapesplit import PlanMismatchError, check_separators, execute, find_separators, parallel_jacobian, record
from tapesplit.rules.look_ups import LOOK_UP
from tapesplit.rules.moves import IndexMap
from tapesplit.rules.positions import places
from tapesplit.structures.comparison import fits, is_look_up, without_places
from tapesplit.structures.recognize import recognizer
from tapesplit.structures.structure import structure_of

RANDOM = onp.random.default_rng(0)
MIX = RANDOM.standard_normal((12, 12))
POINTS = RANDOM.standard_normal((8, 12))
MODES = pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
place: dict[str, onp.ndarray] = {}


def ranked(x):
    y = np.tanh(MIX @ x)
    return y[np.argsort(y)] * x


def best(x):
    y = MIX @ x
    return y[np.argmax(y)] * x


def interpolated(x):
    """Read a table of 12 values at 200 points."""
    below = place["index"]
    return (x[below] * 0.3 + x[below + 1] * 0.7) ** 2


def shuffled(x):
    """Look 144 values up: too many for a block of a scalar sweep."""
    return np.ravel(np.outer(x, x))[place["index"] * 13] * 2.0


def chosen(x):
    """Take elements by a mask with as many true values each time."""
    mask = onp.zeros(12, bool)
    mask[place["index"][:1]] = True
    return np.sin(x[mask]) * np.sum(x[~mask])


def rows(x):
    return np.reshape(x, (4, 3))[place["index"] % 4] @ onp.arange(3.0)


def pixels(x):
    """Look up by rows and columns, and by a row and a slice."""
    image = np.reshape(x, (3, 4))
    return image[place["index"] % 3, place["index"] % 4] * np.sum(image[onp.int64(2), 1:])


def complex_ones(x):
    z = np.exp(1j * x)[place["index"]]
    return np.real(z * (1.0 + 2.0j))


def window(x):
    first = int(place["index"][0])
    return x[first : first + 2] ** 2 * np.sum(x)


def element(x):
    return x * np.sin(x)[int(place["index"][0])]


def cells(x):
    """Look up by Python's integers in tuples, beside slices and arrays, and by lists."""
    i, j = place["index"][:2].tolist()
    image = np.reshape(x, (3, 4))
    return np.sin(image)[i % 3, j % 4] * image[:, j % 4] * np.exp(image)[[i % 3, 0], place["index"][2] % 4][0]


def complex_window(x):
    first = int(place["index"][0])
    return np.imag(np.exp(1j * x)[first : first + 2] * x[3])


FUNCTIONS = [
    *(ranked, best, interpolated, shuffled, chosen, rows, pixels, complex_ones),
    *(window, element, cells, complex_window),
]


@MODES
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_one_plan_serves_all_contents(fun, method):
    jac = parallel_jacobian(fun, method=method)
    best_of = set()
    for point in POINTS:
        place["index"] = RANDOM.integers(0, 11, 200)
        best_of.add(int(onp.argmax(MIX @ point)))
        onp.testing.assert_allclose(jac(point), jacobian(fun)(point), rtol=1e-12, atol=1e-12)
    assert len(best_of) >= 3
    assert jac.cache_info().misses == 3
    onp.testing.assert_allclose(
        parallel_jacobian(fun, memory_limit=20000, method=method)(POINTS[0]), jacobian(fun)(POINTS[0])
    )


def scattered(x):
    """Look distinct elements up in a loop over numbers; what is read again would be recorded once."""
    total = 0.0
    for i, j in place["index"].reshape(-1, 2)[:4].tolist():
        total = total + np.sin(x[i]) * x[j]
    return total * x


_OPENED_IN_HESSIANS = {ranked, interpolated, shuffled, rows, pixels, window, element, scattered}
"""The others have other tapes, or adjoints that autograd keeps sparse."""


@MODES
@pytest.mark.parametrize("fun", [*FUNCTIONS, scattered])
def test_hessians_read_the_places_of_adjoints_too(fun, method):
    gradient = grad(lambda x: np.sum(fun(x) ** 3 / 10.0))
    jac = parallel_jacobian(gradient, method=method)
    for point in POINTS:
        place["index"] = RANDOM.permutation(10) if fun is scattered else RANDOM.integers(0, 11, 200)
        onp.testing.assert_allclose(jac(point), jacobian(gradient)(point), rtol=1e-11, atol=1e-11)
    assert jac.cache_info().misses == 3 or fun not in _OPENED_IN_HESSIANS


@MODES
def test_masks_with_another_count_get_another_plan(method):
    def fun(x):
        mask = place["mask"]
        return np.concatenate([np.sin(x)[mask] * 2.0, np.cos(x)[~mask]])

    jac = parallel_jacobian(fun, method=method)
    for count in (3, 3, 3, 3, 3, 5, 3, 5, 1):
        place["mask"] = RANDOM.permutation(12) < count
        onp.testing.assert_allclose(jac(POINTS[0]), jacobian(fun)(POINTS[0]), rtol=1e-12, atol=1e-12)
    assert jac.cache_info().misses >= 5


def test_two_contents_have_plans_of_their_own():
    jac = parallel_jacobian(lambda x: x[place["index"]] * 2.0)
    first, second = onp.array([0, 3]), onp.array([5, 5])
    for place["index"] in (first, second, first, second):
        plan = jac.plan(POINTS[0])
        assert not has_open_places(plan.structure)
    assert jac.cache_info()[:2] == (2, 2)


def has_open_places(structure):
    return any(is_look_up(structure, index) for index in range(len(structure.statics)))


def with_open_places(fun):
    """Return a plan that reads index arrays from the tape."""
    jac = parallel_jacobian(fun)
    for turn in range(3):
        place["index"] = onp.full(200, turn)
        plan = jac.plan(POINTS[0])
    assert has_open_places(plan.structure)
    return jac, plan


def test_plans_with_open_places_are_pickled_executed_and_refused():
    _, plan = with_open_places(interpolated)
    place["index"] = RANDOM.integers(0, 11, 200)
    tape = record(interpolated, POINTS[1])
    want = jacobian(interpolated)(POINTS[1])
    onp.testing.assert_allclose(execute(plan, tape), want)
    onp.testing.assert_allclose(execute(pickle.loads(pickle.dumps(plan)), tape), want)  # noqa: S301 (our own)
    place["index"] = place["index"][1:]
    with pytest.raises(PlanMismatchError, match=r"entry 1 \(getitem\) changed from \(200,\) to \(199,\)"):
        execute(plan, record(interpolated, POINTS[1]))


@pytest.mark.parametrize("fun", [window, cells])
def test_recognition_sees_the_kind_of_an_index(fun):
    _, plan = with_open_places(fun)
    known = recognizer(plan.structure)
    place["index"] = onp.array([5, 3, 7])
    assert known.accepts(record(fun, POINTS[1]))


def test_an_integer_an_array_and_a_slice_have_plans_of_their_own():
    def fun(x):
        return np.sum(np.sin(x)[place["index"]]) * x

    jac = parallel_jacobian(fun)
    for place["index"] in (3, onp.int64(4), slice(2, 3), 5, onp.int64(1), slice(7, 8), 6, 0, slice(0, 1)):
        onp.testing.assert_allclose(jac(POINTS[0]), jacobian(fun)(POINTS[0]), rtol=1e-12, atol=1e-12)
    assert jac.cache_info()[:2] == (3, 6)
    place["index"] = 11
    assert jac.explain_miss(POINTS[0]) is None
    place["index"] = (slice(2, 3),)
    assert jac.explain_miss(POINTS[0]).endswith("(getitem) changed from any slice to (slice(2, 3, None))")


@pytest.mark.parametrize("fun", [interpolated, pixels])
def test_recognition_sees_all_but_the_contents(fun):
    _, plan = with_open_places(fun)
    known = recognizer(plan.structure)
    place["index"] = RANDOM.integers(0, 11, 200)
    assert known.accepts(record(fun, POINTS[1]))
    shorter, narrower = onp.arange(5), onp.zeros(200, onp.int32)
    for place["index"] in (shorter, narrower):
        other = record(fun, POINTS[1])
        assert not known.accepts(other)
        assert not fits(plan.structure, structure_of(other))


def test_only_index_arrays_are_left_open():
    place["index"], other = onp.arange(200) % 11, onp.arange(200) % 7
    structures = [structure_of(record(interpolated, POINTS[0]))]
    place["index"] = other
    structures.append(structure_of(record(interpolated, POINTS[0])))
    joint = without_places(*structures)
    assert joint is not None
    assert fits(joint, structures[0])
    assert fits(joint, structures[1])
    assert not fits(structures[0], structures[1])
    axes = [
        structure_of(record(lambda x, a=a: np.cumsum(x.reshape(3, 4), axis=a), POINTS[0])) for a in (0, 1)
    ]
    assert without_places(*axes) is None
    moved = [structure_of(record(lambda x, n=n: np.roll(x, n), POINTS[0])) for n in (1, 2)]
    assert without_places(*moved) is None


def test_many_places_get_a_new_plan():
    def fun(x):
        return np.array([x[i] for i in place["index"]])

    structures = []
    for shift in (0, 1):
        place["index"] = (onp.arange(300) + shift) % 300
        structures.append(structure_of(record(fun, onp.ones(300))))
    assert without_places(*structures) is None
    assert without_places(structures[0], structures[0]) == structures[0]


@pytest.mark.parametrize(("count", "steps", "is_open"), [(16, 200, True), (17, 200, False), (17, 100, True)])
def test_so_do_many_integers_among_much_scalar_code(count, steps, is_open):
    def fun(x):
        y = x[0]
        for _ in range(steps):
            y = np.sin(y)
        return np.array([y, *(x[i] for i in range(place["shift"], place["shift"] + count))])

    structures = []
    for place["shift"] in (1, 2):
        structures.append(structure_of(record(fun, onp.ones(20))))
    assert (without_places(*structures) is not None) == is_open


def test_look_ups_are_cut_like_any_other_operation():
    _, plan = with_open_places(interpolated)
    tape = record(interpolated, POINTS[0])
    check_separators(tape, find_separators(tape))
    check_separators(tape, plan.separators)


def test_reasons_are_not_places_that_are_left_open():
    place["axis"] = 0
    jac, _ = with_open_places(lambda x: x[place["index"]] * np.cumsum(x, axis=place["axis"])[0])
    place["index"], place["axis"] = onp.full(200, 7), None
    assert (
        jac.explain_miss(POINTS[0])
        == "a constant argument of entry 2 (cumsum) changed from axis=0 to axis=None"
    )


GIVEN = onp.random.default_rng(0).random((6, 5, 4))
TWICE = onp.array([1, 4, 1])


@pytest.mark.parametrize("directions", [1, 4, 7])
@pytest.mark.parametrize("longer", [1, 30])
@pytest.mark.parametrize(
    "index",
    [
        TWICE,
        [0, 0, 1],
        (TWICE, onp.array([2, 2, 2])),
        (slice(None), TWICE),
        (Ellipsis, onp.array([3, 0, 0])),
        (onp.array([[0, 1], [1, 1]]), None, slice(1, 3)),
        (GIVEN[:, 0, 0] > 0.5, slice(None), onp.array(2)),
        (onp.array([-1, -1]), slice(None, None, -2)),
        GIVEN > 0.5,
        onp.zeros(0, int),
        2,
        -1,
        slice(4, 1, -2),
        (slice(1, 3), 2),
        (Ellipsis, 1, None),
        (None, slice(2), -1, slice(None)),
        (),
        (GIVEN[:, 0, 0] > 0.5, 1),
        (GIVEN[:, 0, 0] > 0.5, slice(None), 1),
    ],
    ids=str,
)
def test_adjoints_are_added_up_in_every_way(index, longer, directions):
    x = onp.tile(GIVEN, (1, 1, longer))
    if isinstance(index, onp.ndarray) and index.dtype.kind == "b":
        index = x > 0.5
    A = onp.random.default_rng(1).random((directions, *x[index].shape))
    expected = onp.zeros((directions, x.size))
    for adjoints, found in zip(A, expected, strict=True):
        onp.add.at(found, places(x, index), adjoints.ravel())
    onp.testing.assert_allclose(LOOK_UP.adjoints[0](A, x[index], x, index), expected.reshape(-1, *x.shape))
    T = onp.random.default_rng(2).random((directions, *x.shape))
    tangents = LOOK_UP.tangents[0](T, x[index], x, index)
    onp.testing.assert_array_equal(tangents, onp.stack([tangent[index] for tangent in T]))
    moves, flat = IndexMap.of_index(x, index), A.reshape(directions, -1)
    onp.testing.assert_allclose(moves.scatter(flat), expected)
    added = onp.ones_like(expected)
    moves.add(flat, added)
    onp.testing.assert_allclose(added, expected + 1.0)


@pytest.mark.parametrize("directions", [1, 3, 9, 40])
@pytest.mark.parametrize("dtype", [float, onp.float32, complex])
@pytest.mark.parametrize("kind", [int, onp.int8])
@pytest.mark.parametrize("index", [[0, 0, -1, 2, -4], [], [[1, 1], [-1, 3]], [3]])
def test_adjoints_are_put_back_where_an_index_of_each_call_points(directions, dtype, index, kind):
    place = onp.array(index, dtype=kind)
    A = (onp.arange(directions * place.size) + 1.0).reshape(directions, *place.shape).astype(dtype)
    x, expected = onp.zeros(200, dtype), onp.zeros((directions, 200), dtype)
    for row, adjoints in zip(expected, A, strict=True):
        onp.add.at(row, place, adjoints)
    found = LOOK_UP.adjoints[0](A, x[place], x, place)
    assert found.dtype == dtype
    onp.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("index", [[True, False, True, True], ([False, True, True, True], slice(1, 3))])
def test_masks_leave_no_sparse_adjoints_on_the_tape_of_a_hessian(index):
    items = index if isinstance(index, tuple) else (index,)
    place = tuple(onp.array(item) if isinstance(item, list) else item for item in items)
    gradient = grad(lambda x: np.sum(np.sin(x[place]) * x[place] ** 2))
    x = onp.linspace(0.3, 1.4, 16).reshape(4, 4)
    assert all(isinstance(entry.value, onp.ndarray | float) for entry in record(gradient, x))
    onp.testing.assert_allclose(parallel_jacobian(gradient)(x), jacobian(gradient)(x), rtol=1e-12)


@pytest.mark.parametrize("directions", [3, 40])
def test_adjoints_are_put_back_among_the_elements_of_a_matrix(directions):
    x = onp.zeros((5, 7))
    for place in (
        (onp.array([0, -1, 4, 0]), onp.array([6, -7, 0, 6])),
        (onp.array([[0], [-1]]), onp.array([2, -1, 2])),
        (onp.array([1, 1]), onp.array([3])),
        (onp.array([], dtype=int), onp.array([], dtype=int)),
    ):
        A = RANDOM.standard_normal((directions, *x[place].shape))
        expected = onp.zeros((directions, 5, 7))
        for row, adjoints in zip(expected, A, strict=True):
            onp.add.at(row, place, adjoints)
        found = LOOK_UP.adjoints[0](A, x[place], x, place)
        onp.testing.assert_allclose(found, expected, rtol=1e-14)
