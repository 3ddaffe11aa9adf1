"""Compressed sweeps: directions of sparse Jacobians that share a seed."""

import pickle
from itertools import pairwise

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian
from autograd.extend import defvjp, primitive
from hypothesis import example, given
from hypothesis import strategies as st
from traced_memory import traced_peak

from tapesplit import defvector, execute, parallel_jacobian
from tapesplit.planning import compiling
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps import coloring, compression, pattern, sweep
from tapesplit.sweeps.coloring import color_columns
from tapesplit.sweeps.compression import CompressedSweep
from tapesplit.sweeps.lowering import compile_scalar_sweep
from tapesplit.sweeps.pattern import find_pattern
from tapesplit.sweeps.scalar_sweep import ScalarSweep
from tapesplit.sweeps.sweep import run_sweep

MIX = onp.random.default_rng(0).standard_normal((5, 5))
PLACES = onp.random.default_rng(1).integers(0, 60, (80, 3))


def boundary_values(u):
    inner = u[1:-1]
    equations = u[2:] - 2.0 * inner + u[:-2] + 0.01 * np.exp(inner)
    return np.concatenate([u[:1], equations, u[-1:] - 1.0])


def collocation(z):
    """States at many times; each equation reads those of two neighbors."""
    states = np.reshape(z, (-1, 5))
    rates = np.tanh(states @ MIX)
    return np.ravel(states[1:] - states[:-1] - 0.05 * (rates[1:] + rates[:-1]))


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def loop(x):
    return np.array([x[i] ** 2 * x[i - 1] - np.sin(x[i - 2]) for i in range(len(x))])


def observations(z):
    """Some equations for three numbers each, in any order, with others that no equation reads."""
    seen = z[PLACES]
    return np.ravel(seen[:, :2] * np.sin(seen[:, 2:]))


def inverses(z):
    return np.ravel(np.linalg.inv(np.reshape(z, (-1, 2, 2)) + 3.0 * onp.eye(2)))


def waves(x):
    rotated = np.exp(1j * x) * (x + 1j * np.roll(x, 1))
    return np.concatenate([np.real(rotated), np.imag(rotated)])


def with_constants(x):
    return np.concatenate([np.ones(3), np.sin(x), np.zeros(2), x * np.roll(x, 1), x[:4]])


SPARSE = {
    "boundary values": (boundary_values, 90),
    "collocation": (collocation, 100),
    "Hessian": (grad(rosenbrock), 80),
    "long Hessian": (grad(rosenbrock), 700),
    "loop": (loop, 60),
    "observations": (observations, 70),
    "stacked inverses": (inverses, 80),
    "complex numbers": (waves, 50),
    "constants": (with_constants, 64),
}


def colors(jac, *args):
    return [task.seeds for task in jac.plan(*args).tasks]


@pytest.fixture
def always(monkeypatch):
    """Color whatever can be, however little it gains."""
    monkeypatch.setattr("tapesplit.planning.compiling._WORTH_COLORING", 1e12)


def check_compressed(f, x, **options):
    """Compare the compressed Jacobian with autograd's, bit by bit with the same sweep of all directions."""
    jac = parallel_jacobian(f, machines=1, **options)
    found, expected = jac(x), jacobian(f)(x)
    (sweep,), (task,) = jac.plan(x).sweeps, jac.plan(x).tasks
    assert isinstance(sweep, CompressedSweep)
    assert 0 < task.seeds == sweep.count <= task.directions / 2
    onp.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * onp.abs(expected).max())
    onp.testing.assert_array_equal(found, run_sweep(sweep.sweep, jac.tape(x), None))
    return jac


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", SPARSE)
def test_compressed_jacobians_are_those_of_all_directions(name, method):
    f, size = SPARSE[name]
    check_compressed(f, onp.linspace(0.3, 1.1, size), method=method)


@pytest.mark.parametrize("name", ["boundary values", "collocation", "Hessian"])
def test_large_ones_are_compressed_unasked(name):
    f, _ = SPARSE[name]
    jac = check_compressed(f, onp.linspace(0.3, 1.1, 400))
    assert colors(jac, onp.ones(400)) == [10 if name == "collocation" else 3]


def test_joined_diagonals_share_a_seed():
    """Handing out zeros takes less than moving so many elements."""
    x = onp.linspace(0.1, 1.0, 500)
    jac = parallel_jacobian(lambda x: np.concatenate([np.sin(x), np.cos(x)]), machines=1)
    (task,) = jac.plan(x).tasks
    assert (task.form, task.seeds) == ("system", 1)
    expected = onp.vstack([onp.diag(onp.cos(x)), onp.diag(-onp.sin(x))])
    onp.testing.assert_allclose(jac(x), expected, rtol=1e-14)


def test_array_steps_give_way_to_a_compressed_system():
    f, _ = SPARSE["Hessian"]
    x = onp.linspace(0.3, 1.1, 1000)
    jac = check_compressed(f, x)
    assert jac.plan(x).tasks[0].form == "system"
    before = jac.cache_info()
    jac(x + 0.1)
    assert (jac.cache_info().hits, jac.cache_info().misses) == (before.hits + 1, before.misses)


def bordered(x):
    """Equations between neighbors, and two that read everything."""
    return np.concatenate([boundary_values(x), np.array([np.sum(x**2), x[3] * np.mean(np.sin(x))])])


def with_parameter(z):
    """Equations between neighbors that all read one parameter."""
    return np.concatenate([z[0] * boundary_values(z[1:]), z[:1] ** 2])


def constants_and_a_parameter(z):
    """Constant outputs, outputs that are inputs, and a parameter that all others read."""
    return np.concatenate([np.ones(3), z[1:] * z[0], np.zeros(2), z[:1]])


def arrow(x):
    return rosenbrock(x) + x[0] * np.sum(np.sin(x))


def repeated(x):
    """The same dense number twice, between constants."""
    total = np.sum(x * np.roll(x, 1))
    return np.concatenate([np.ones(2), np.stack([total, total]), np.cos(x), x[:3]])


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("f", [bordered, with_parameter, grad(arrow), repeated, constants_and_a_parameter])
def test_what_many_directions_reach_is_swept_from_the_other_end(f, method):
    x = onp.linspace(0.3, 1.1, 90)
    jac = parallel_jacobian(f, machines=1, method=method)
    (sweep,), expected = jac.plan(x).sweeps, jacobian(f)(x)
    pattern = expected != 0
    dense = ((pattern if method == "tangent" else pattern.T).sum(axis=1) > 45).nonzero()[0]
    onp.testing.assert_array_equal(sweep.left_out, dense)
    assert sweep.count <= 7
    for memory_limit in (None, sweep.one_color_bytes):
        found = execute(jac.plan(x), jac.tape(x), memory_limit=memory_limit)
        onp.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    onp.testing.assert_allclose(jac(0.5 * x), jacobian(f)(0.5 * x), rtol=0, atol=1e-12)


def test_large_bordered_systems_are_compressed_unasked():
    x = onp.linspace(0.3, 1.1, 400)
    jac = parallel_jacobian(bordered, machines=1)
    assert colors(jac, x) == [5]
    text = " ".join(jac.plan(x).describe("full").split())
    assert "Link 1 is sparse: 400 directions share 3 seeds" in text
    assert "compressed 3 seeds + 2 for 400 directions" in text
    assert "2 outputs that many inputs reach are swept in adjoint mode" in text
    assert "Few directions carry the sparse Jacobian" in text


def joint_likelihood(p, table):
    """Effects of samples and of their groups: the Hessian is an arrow, though the table is dense."""
    group = onp.arange(len(table)) % 50
    eta = np.dot(table, p[50:]) + p[group]
    return np.sum(np.logaddexp(0.0, eta)) + np.sum(p**2)


@pytest.mark.parametrize("filled", [1.0, 0.1])
def test_directions_share_seeds_behind_a_dense_product(filled):
    rng = onp.random.default_rng(0)
    p, table, other = rng.standard_normal(58), *rng.standard_normal((2, 3000, 8))
    slopes = grad(joint_likelihood)
    jac = parallel_jacobian(slopes, machines=1)
    for values in (table * (rng.random(table.shape) < filled), other):  # maybe with other zeros
        onp.testing.assert_allclose(jac(p, values), jacobian(slopes)(p, values), rtol=1e-11, atol=1e-11)
        (sweep,) = jac.plan(p, values).sweeps
        assert isinstance(sweep, CompressedSweep)
        assert sweep.count <= 17


def test_memory_of_sweeping_back_is_predicted():
    x = onp.linspace(0.3, 1.1, 2000)
    jac = parallel_jacobian(bordered, machines=1)
    jac(x)
    tape, plan = jac.tape(x), jac.plan(x)
    peak = traced_peak(lambda: execute(plan, tape))
    assert peak / 1.5 < plan.peak_bytes < 1.5 * peak


@pytest.mark.usefixtures("always")
def test_dense_jacobians_keep_their_directions():
    x = onp.linspace(0.3, 1.1, 50)

    def dense(x):
        return x * np.sum(x)

    for method in ("tangent", "adjoint"):
        jac = parallel_jacobian(dense, machines=1, method=method)
        assert colors(jac, x) == [0]
        onp.testing.assert_allclose(jac(x), jacobian(dense)(x), rtol=1e-14)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_a_first_point_where_derivatives_are_zero_is_no_pattern(method, monkeypatch):
    def looks_sparse_at_zero(x):
        return np.tanh(x) * np.sum(x**2) + 0.1 * x

    monkeypatch.setattr(sweep, "compress", lambda *_: pytest.fail("the whole pattern was looked for"))
    jac = parallel_jacobian(looks_sparse_at_zero, method=method, machines=1)
    x = onp.linspace(-1.0, 1.0, 200)
    onp.testing.assert_array_equal(jac(0.0 * x), 0.1 * onp.eye(200))
    onp.testing.assert_allclose(jac(x), jacobian(looks_sparse_at_zero)(x), rtol=1e-12, atol=1e-14)
    assert [task.seeds for task in jac.plan(x).tasks] == [0]


def test_the_sample_is_not_fooled_by_grids(monkeypatch):
    def boundary_column(u):
        grid = np.reshape(u, (32, 32))
        inner = grid[:, 1:]
        return np.ravel(np.concatenate([grid[:, :1], np.tanh(inner) * np.sum(inner**2)], axis=1))

    monkeypatch.setattr(sweep, "compress", lambda *_: pytest.fail("the whole pattern was looked for"))
    x = onp.random.default_rng(0).standard_normal(1024)
    onp.testing.assert_allclose(
        parallel_jacobian(boundary_column)(x), jacobian(boundary_column)(x), rtol=1e-12
    )


@pytest.mark.usefixtures("always")
def test_no_pattern_is_looked_for_in_huge_jacobians(monkeypatch):
    monkeypatch.setattr(compression, "_LARGEST_JACOBIAN", 90 * 92)
    assert colors(parallel_jacobian(boundary_values, machines=1), onp.linspace(0.3, 1.1, 90)) == [3]
    monkeypatch.setattr(compression, "_LARGEST_JACOBIAN", 1000)
    jac = parallel_jacobian(boundary_values, machines=1)
    jac.cache_clear()
    assert colors(jac, onp.linspace(0.3, 1.1, 90)) == [0]


def test_many_full_rows_end_the_search_for_colors(monkeypatch):
    def many_full_rows(x):
        return np.concatenate([np.sin(x) * np.cos(x), x[:180] * np.sum(x * x)])

    monkeypatch.setattr(compression, "color_columns", lambda *_: pytest.fail("no colors can be shared"))
    monkeypatch.setattr(compiling, "SPARSE_PART", 1.0)
    plan = parallel_jacobian(many_full_rows, method="tangent").plan(onp.ones(300))
    assert [task.seeds for task in plan.tasks] == [0]


@pytest.mark.parametrize("start", [0.0, 1.0, onp.nan])
def test_the_plan_is_the_same_wherever_the_first_call_is(start):
    def neighbors(x):
        return np.sqrt(x[1:]) * x[:-1]

    jac = parallel_jacobian(neighbors, machines=1)
    with onp.errstate(all="ignore"):
        jac(onp.full(2000, start))
    assert [task.seeds for task in jac.plan(onp.ones(2000)).tasks] == [2]


@pytest.mark.usefixtures("always")
def test_few_directions_are_not_colored():
    assert colors(parallel_jacobian(np.sin, machines=1), onp.ones(31)) == [0]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_several_inputs_one_of_which_nobody_reads(method):
    def f(x, y, z):
        return np.concatenate([np.sin(x[::2]) * y, y * y * x[1::2], x])

    args = onp.linspace(0.2, 0.9, 60), onp.linspace(1.0, 2.0, 30), onp.ones(7)
    jac = parallel_jacobian(f, (0, 1, 2), machines=1, method=method)
    assert colors(jac, *args)[0] in range(1, 10)
    by_x, by_y, by_z = jac(*args)
    onp.testing.assert_allclose(by_x, jacobian(f, 0)(*args), rtol=1e-14)
    onp.testing.assert_allclose(by_y, jacobian(f, 1)(*args), rtol=1e-14)
    onp.testing.assert_array_equal(by_z, onp.zeros((120, 7)))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_an_output_that_is_an_input_and_an_input_seeded_twice(method):
    def f(x):
        return np.concatenate([x, x, np.roll(x, 1) * x])

    check_compressed(f, onp.linspace(0.2, 0.9, 40), method=method)


@pytest.mark.usefixtures("always")
def test_single_precision_stays_so():
    x = onp.linspace(0.3, 1.1, 60, dtype=onp.float32)
    found = parallel_jacobian(boundary_values, machines=1)(x)
    assert found.dtype == jacobian(boundary_values)(x).dtype
    onp.testing.assert_allclose(found, jacobian(boundary_values)(x), rtol=1e-6)


def test_infinite_derivatives_spoil_nothing_that_is_swept_back():
    x = onp.linspace(1.0, 2.0, 100)
    x[80] = 0.0

    def f(x):
        s = np.sqrt(x)
        return np.append(s[1:] * s[:-1], np.sum(s[:60] * s[1:61]))

    jac = parallel_jacobian(f, machines=1)
    with onp.errstate(divide="ignore", invalid="ignore"):
        found = jac(x)
    assert jac.plan(x).sweeps[0].left_out.size == 1
    assert (found[99, :61] > 0).all()
    assert (found[99, 61:] == 0).all()


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_infinite_derivatives_spoil_nothing_that_is_always_zero(method):
    x = onp.linspace(0.0, 1.0, 300)

    def f(x):
        return np.sqrt(x) + 2.0 * np.roll(x, 1)

    jac = parallel_jacobian(f, machines=1, method=method)
    with onp.errstate(divide="ignore", invalid="ignore"):
        found = jac(x)
    assert colors(jac, x) == [2]
    assert found[0, 0] == onp.inf
    pattern = (onp.eye(300) + onp.roll(onp.eye(300), 1, axis=0)) > 0
    assert (found[~pattern] == 0).all()
    onp.testing.assert_allclose(found[1:, 1:].diagonal(), 0.5 / onp.sqrt(x[1:]), rtol=1e-14)
    onp.testing.assert_array_equal(found[1:, 1:].diagonal(-1), onp.full(298, 2.0))


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_memory_limits_take_the_colors_in_blocks(method):
    x = onp.linspace(0.3, 1.1, 400)
    jac = parallel_jacobian(collocation, machines=1, method=method)
    plan, tape, expected = jac.plan(x), jac.tape(x), jac(x)
    (sweep,) = plan.sweeps
    assert isinstance(sweep, CompressedSweep)
    found = execute(plan, tape, memory_limit=sweep.one_color_bytes + 2 * sweep.bytes_per_direction)
    onp.testing.assert_array_equal(found, expected)
    # Without room for the compressed Jacobian, each direction has its own seed.
    assert sweep.least_bytes == sweep.sweep.least_bytes < sweep.one_color_bytes
    found = execute(plan, tape, memory_limit=sweep.least_bytes)
    onp.testing.assert_array_equal(found, expected)


def test_plans_say_so_and_pickle():
    x = onp.linspace(0.3, 1.1, 400)
    jac = parallel_jacobian(boundary_values, machines=1)
    plan = jac.plan(x)
    assert "compressed 3 seeds for 400 directions, as the Jacobian is sparse" in " ".join(str(plan).split())
    full = " ".join(plan.describe("full").split())
    assert (
        "Link 1 is sparse: 400 directions share 3 seeds, since no two inputs of one color reach the same "
        "output." in full
    )
    again = pickle.loads(pickle.dumps(plan))  # noqa: S301 (made here)
    onp.testing.assert_array_equal(execute(again, jac.tape(x)), jac(x))


def test_a_rule_that_raises_while_directions_are_tried_says_so():
    @primitive
    def wave(x):
        return onp.sin(x)

    def partial(_ans, _x):
        raise ZeroDivisionError("the rule is broken")

    defvjp(wave, lambda _ans, x: lambda g: g * onp.cos(x))
    defvector(wave, partial)
    jac = parallel_jacobian(lambda x: wave(np.roll(x, 1) * x) + np.roll(x, 2), machines=1)
    with pytest.raises(ZeroDivisionError, match="the rule is broken") as caught:
        jac(onp.linspace(0.1, 1.0, 1500))
    assert any("directions for the plan of" in note or "task 1" in note for note in caught.value.__notes__)


@st.composite
def patterns(draw):
    rows, columns = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    cells = st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns)
    return onp.array(draw(cells)).reshape(rows, columns)


@given(patterns())
@example(np.arange(11)[None] != 2)
def test_columns_of_one_color_have_no_row_in_common(pattern):
    found = color_columns(*pattern.nonzero(), *pattern.shape)
    for color in range(int(found.max()) + 1):
        assert pattern[:, found == color].sum(axis=1).max(initial=0) <= 1
    assert set(found) == set(range(int(found.max()) + 1))
    neighbors = (pattern.T.astype(int) @ pattern > 0).sum(axis=0)
    # The greedy way promises the first number; another one that takes few more than the fewest comes first.
    enough = max(1, neighbors.max(), int(coloring._FEW * pattern.sum(axis=1).max()))
    assert found.max() < enough


@pytest.mark.parametrize("width", [1, 2, 3, 7])
def test_banded_matrices_take_as_many_colors_as_they_have_diagonals(width):
    pattern = sum(onp.eye(40, k=offset) for offset in range(width)) > 0
    assert color_columns(*pattern.nonzero(), 40, 40).max() + 1 == width


@st.composite
def sparse_programs(draw):
    """Layers, each value of which reads at most two of the layer before, and sums of some layers."""
    sizes = [40, *draw(st.lists(st.integers(33, 50), min_size=1, max_size=3))]
    place = st.integers(0, 32)
    reads = [
        onp.array(draw(st.lists(st.tuples(place, place), min_size=size, max_size=size)))
        + onp.arange(size)[:, None] % (before - 32)
        for before, size in pairwise(sizes)
    ]

    sums = draw(st.lists(st.sampled_from(range(len(reads))), max_size=2))

    def f(x):
        extra = []
        for layer, read in enumerate(reads):
            extra += [np.sum(x * x)] * sums.count(layer)
            x = np.sin(x[read[:, 0]]) * x[read[:, 1]]
        return np.concatenate([x[:7], np.array(extra), x[7:]]) if extra else x

    return f, draw(st.sampled_from(["tangent", "adjoint"]))


@pytest.mark.usefixtures("always")
@given(sparse_programs())
def test_random_sparse_programs(program):
    f, method = program
    x = onp.linspace(0.5, 1.5, 40)
    expected = jacobian(f)(x)
    found = parallel_jacobian(f, machines=1, method=method)(x)
    onp.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(1.0, onp.abs(expected).max()))


def beside_full_ones(u):
    """Neighbors beside results that read everything, and inputs that everything reads."""
    inner = u[1:-1] * u[:-2] + u[0] + np.exp(u[2:])
    return np.concatenate([[np.sum(u * u)], inner[:70], [u[3] * u[5], np.prod(u)], inner[70:], inner[::40]])


PATTERNS = {
    **{name: f for name, (f, _) in SPARSE.items()},
    "beside full ones": beside_full_ones,
    "scattered": lambda x: np.sin(x[PLACES[:, 0]]) * x[PLACES[:, 1]],
    "dense": lambda x: np.cumsum(np.sin(x)),
    "nothing": lambda x: 0.0 * x,
}


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_found_in_groups_are_those_of_all_seeds(name, method):
    x = onp.linspace(0.3, 1.1, 320)
    jac = parallel_jacobian(PATTERNS[name], machines=1, method=method)
    tape, (chunk, *_) = jac.tape(x), jac.plan(x).chunks
    system = compile_scalar_sweep(tape, facts_of(tape), chunk, 320, adjoint_mode=method == "adjoint")
    result, seed = find_pattern(system)
    found = onp.zeros((len(system.results), len(system.seeds)), dtype=int)
    onp.add.at(found, (result, seed), 1)
    onp.testing.assert_array_equal(found, system.paths() != 0)
    assert (onp.diff(result) >= 0).all()


@pytest.mark.parametrize(("size", "reach"), [(97, 3), (150, 5), (333, 20), (1000, 5), (1000, 20)])
def test_bands_of_rings_are_colored_with_the_fewest_colors(size, reach):
    neighbors = onp.arange(-reach, reach + 1)
    row = onp.repeat(onp.arange(size), neighbors.size)
    column = (onp.arange(size)[:, None] + neighbors).ravel() % size
    sharing = size // neighbors.size  # so many columns can have one color
    assert color_columns(row, column, size, size).max() + 1 == -(-size // sharing)


def test_patterns_of_bands_take_few_directions_and_no_search(monkeypatch):
    """Two sweeps, of the groups and of the places in them; colors by a formula."""
    carried = []
    paths = ScalarSweep.paths

    def counted(self, columns=None):
        carried.append(len(self.seeds) if columns is None else columns.shape[1])
        return paths(self, columns)

    monkeypatch.setattr(ScalarSweep, "paths", counted)
    monkeypatch.setattr(coloring, "_greedy", lambda *_: pytest.fail("bands have colors without a search"))
    f, _ = SPARSE["boundary values"]
    jac = parallel_jacobian(f, machines=1)
    assert colors(jac, onp.linspace(0.3, 1.1, 1000)) == [3]
    assert sum(carried) < 200


def test_groups_that_most_results_read_are_not_colored(monkeypatch):
    monkeypatch.setattr(pattern, "color_columns", lambda *_: pytest.fail("so many colors are too many"))
    mixed = [onp.random.default_rng(k).permutation(400) for k in range(14)]
    jac = parallel_jacobian(lambda x: sum(np.sin(x[m]) for m in mixed), machines=1)
    assert 14 <= colors(jac, onp.linspace(0.3, 1.1, 400))[0] <= 200


def test_peaks_count_sweeping_back_from_what_is_left_out():
    many, few = onp.random.default_rng(3).integers((20, 0), (400, 20), (6000, 2)).T
    gradient = grad(lambda x: np.sum(np.sin(x[many] * x[few]) * x[many]))
    x = onp.linspace(-1.0, 1.0, 400)
    jac = parallel_jacobian(gradient, machines=1)
    plan, tape = jac.plan(x), jac.tape(x)
    assert plan.sweeps[0].left_out.size
    execute(plan, tape)
    assert plan.peak_bytes == pytest.approx(traced_peak(lambda: execute(plan, tape)), rel=0.1)
