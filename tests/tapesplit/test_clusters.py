"""Merged operations of array sweeps and their reductions: what goes into what, and the same derivative."""

import pickle

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad, jacobian
from autograd.scipy.special import gammaln, logsumexp
from hypothesis import given, settings
from hypothesis import strategies as st
from traced_memory import traced_peak

import tapesplit.sweeps.cluster_step
import tapesplit.sweeps.clusters
from tapesplit import execute, parallel_jacobian, record
from tapesplit.cuts.chunks import Chunk, cut_into_chunks
from tapesplit.cuts.graph import graph_of
from tapesplit.rules import Bulk
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps.array_sweep import ArraySweep, compile_array_sweep
from tapesplit.sweeps.cluster_step import ClusterStep, _scaled_diagonal
from tapesplit.sweeps.contractions import contracted, letters
from tapesplit.sweeps.directions import Diagonal, Rows
from tapesplit.sweeps.row_sweep import RowSweep


@pytest.fixture(autouse=True)
def always_contract(monkeypatch):
    monkeypatch.setattr(tapesplit.sweeps.clusters, "_WORTH_CONTRACTING", 0)


RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(0.2, 1.1, 12)
TABLE = RANDOM.uniform(-1.0, 1.0, (4, 12))


def compiled(fun, x, *, directions=12, adjoint_mode=False):
    """Compile a whole recording into array steps."""
    tape = record(fun, x)
    facts = facts_of(tape)
    (chunk,) = cut_into_chunks(graph_of(tape, facts), ())
    return tape, compile_array_sweep(tape, facts, chunk, directions, adjoint_mode=adjoint_mode)


def clusters(fun, x=X, directions=12):
    """List the labels of merged operations, the last one first, each with its reduction."""
    tape, sweep = compiled(fun, x, directions=directions)
    return [
        ([tape.label(member.number) for member in step.members], step.reduction and tape.label(step.index))
        for step in sweep.steps
        if isinstance(step, ClusterStep)
    ]


def check(fun, x=X):
    """Compare with autograd, for the identity as a whole and in blocks, and for other directions."""
    want = jacobian(fun)(x).reshape(-1, x.size)
    scale = max(np.abs(want).max(initial=0.0), 1.0)
    for adjoint_mode in (False, True):
        tape, sweep = compiled(fun, x, adjoint_mode=adjoint_mode)
        rows = want if adjoint_mode else want.T
        for most in (None, 5):
            np.testing.assert_allclose(sweep.run(tape, None, most), rows, rtol=0, atol=1e-13 * scale)
        directions = RANDOM.standard_normal((3, len(rows)))
        found = sweep.run(tape, directions)
        np.testing.assert_allclose(found, directions @ rows, rtol=0, atol=1e-12 * scale)


def pairs(x):
    return anp.sum(anp.tanh(x[:, None] - x), axis=1)


def forces(x):
    r = x.reshape(4, 3)
    d = r[:, None, :] - r
    return anp.sum(d * (anp.sum(d**2, axis=2) + 0.1)[:, :, None] ** -1.5, axis=1)


def quotient(x):
    d = x[:, None] - x
    return anp.sum(d / (d**2 + 0.1), axis=0)


def softmax(x):
    e = anp.exp(x.reshape(4, 3))
    return e / anp.sum(e, axis=1, keepdims=True)


def energy(x):
    return anp.sum(anp.log(anp.abs(x[:, None] - x + np.eye(12))))


REDUCED = {
    "pairs": pairs,
    "forces": forces,
    "quotient": quotient,
    "softmax": softmax,
    "hessian": grad(energy),
    "product with a table": lambda x: anp.sum(TABLE * x, axis=1),
    "mean": lambda x: anp.mean(anp.sin(TABLE * x), axis=0),
    "all": lambda x: anp.array([anp.sum(anp.sin(TABLE * x)), anp.mean(x * x)]),
    "two axes": lambda x: anp.sum(anp.exp(x.reshape(2, 2, 3) * x[:4].reshape(2, 2, 1)), axis=(0, -1)),
    "keepdims": lambda x: anp.mean(x[:, None] * x**2, axis=-1, keepdims=True),
    "maximum": lambda x: anp.max(TABLE * x, axis=1),
    "product": lambda x: anp.prod(TABLE * x, axis=0),
    "logsumexp": lambda x: logsumexp(TABLE * x + x[:4, None], axis=1),
    "variance": lambda x: anp.var(TABLE * x, axis=1),
    "norm": lambda x: anp.linalg.norm(TABLE * x, ord=4, axis=1),
    "matrix times vector": lambda x: anp.exp(TABLE * x) @ np.cos(np.arange(12.0)),
    "matrix times its own vector": lambda x: anp.exp(TABLE * x) @ (x * 2.0),
    "matrix times a vector that is in it": lambda x: anp.exp(TABLE * x) @ x,
    "vector times matrix": lambda x: x[:4] @ anp.tanh(TABLE * x),
    "vector times a matrix that it is in": lambda x: (
        x @ anp.tanh(x * np.cos(np.arange(144.0)).reshape(12, 12))
    ),
    "narrow weights": lambda x: -anp.sin(TABLE * x) @ np.arange(12, dtype=np.uint8),
    "list of weights": lambda x: [1, 2, 3, 4] @ -(TABLE * x),
    "truth values": lambda x: anp.dot(1.0 - TABLE * x, (np.arange(12) > 4)),
    "complex weights": lambda x: anp.imag(anp.tanh(x[:, None] - x) @ np.exp(1j * np.arange(12))),
    "half weights": lambda x: ((x[:, None] - x) * 1e5) @ np.linspace(0.1, 1.0, 12).astype(np.float16),
    "single weights": lambda x: (x[:, None] - x) @ np.linspace(0.1, 1.0, 12).astype(np.float32),
    "dot": lambda x: anp.dot(anp.dot(x[:4], anp.sin(TABLE * x)), anp.sin(TABLE.T * x[:4])),
    "one column": lambda x: anp.exp(x[:, None]) @ x[:1],
    "in the middle": lambda x: anp.cos(anp.sum(anp.sin(TABLE * x), axis=1))[:, None] * x,
    "one row": lambda x: anp.sum(x[None, :] * x[:, None, None], axis=2),
    "length one": lambda x: anp.sum((x.reshape(1, 12) * x.reshape(12, 1)).reshape(12, 1, 12) * 2.0, axis=1),
    "nothing": lambda x: anp.sum(TABLE[:, :0] * x[:0], axis=1) + x[:4],
    "constant": lambda x: anp.sum(x[:, None] - x, axis=1),
    "lists": lambda x: anp.sum(TABLE.tolist() * x, axis=1),
    "numbers as a condition": lambda x: anp.sum(anp.where(anp.sin(TABLE * x), TABLE * x, TABLE), axis=1),
    "moduli": lambda x: anp.sum(anp.abs(anp.exp(1j * TABLE * x) + x), axis=1),
    "several results": lambda x: outcomes(TABLE @ x, x),
    "several results of one size": lambda x: outcomes(anp.sin(TABLE * x), x),
    "several results of complex numbers": lambda x: moduli((TABLE + 1j * TABLE[::-1]) @ x),
    "several results of a complex table": lambda x: moduli(np.exp(1j * TABLE) * x),
    "broadcast and read otherwise, too": lambda x: anp.concatenate(
        [anp.sum((y := x[:, None] - x) ** 2, axis=1), anp.sin(y)[0]]
    ),
}


@pytest.mark.filterwarnings("ignore:(divide|invalid)")
@pytest.mark.parametrize("fun", REDUCED.values(), ids=REDUCED)
def test_reductions_have_the_same_derivative(fun):
    check(fun)


def test_a_reduction_takes_in_what_it_adds_up():
    assert clusters(pairs) == [(["tanh", "subtract"], "sum")]
    assert clusters(lambda x: anp.sum(TABLE * x, axis=1)) == [(["multiply"], "sum")]
    assert clusters(lambda x: anp.max(anp.sin(x))) == [(["sin"], "max")]


def test_a_matrix_times_a_vector_is_a_reduction():
    assert clusters(lambda x: anp.exp(TABLE * x) @ x) == [(["exp", "multiply"], "matmul")]
    assert clusters(lambda x: anp.dot(np.ones(4), TABLE * x)) == [(["multiply"], "dot")]
    assert clusters(lambda x: (TABLE * x) @ TABLE.T) == [(["multiply"], None)]
    assert clusters(lambda x: TABLE @ anp.sin(x)) == [(["sin"], None)]
    assert clusters(lambda x: anp.exp(TABLE * x) @ x.astype(np.float32)) == [(["exp", "multiply"], None)]


def test_what_several_reductions_depend_on_goes_into_all_if_it_is_broadcast():
    first, *between, last = clusters(forces)
    assert first == (["power", "subtract"], "sum")
    assert between == [(["add"], None)]
    assert last == (["multiply", "power", "subtract"], "sum")
    assert clusters(quotient) == [(["divide", "add", "power", "subtract"], "sum")]


def test_copies_must_pay_in_directions():
    assert len(clusters(energy, directions=12)) == len(clusters(energy, directions=1)) == 1
    assert [reduction for _, reduction in clusters(grad(energy), directions=1)] == [None, "sum", None]
    assert [reduction for _, reduction in clusters(grad(energy), directions=6)] == ["sum", "sum", None]


def test_copies_of_differences_pay_for_any_direction():
    """Their derivatives are numbers; one direction for each difference takes longer."""
    assert clusters(quotient, directions=1) == [(["divide", "add", "power", "subtract"], "sum")]
    first, *_, last = clusters(forces, directions=1)
    assert (first, last) == ((["power", "subtract"], "sum"), (["multiply", "power", "subtract"], "sum"))


def test_copies_of_differences_do_not_pay_where_everything_is_summed():
    """A direction of each sum is a number; the difference needs a single one of its size."""

    def moments(x):
        d = x - anp.reshape(x, (-1, 1))
        return anp.sum(d**2) + anp.sum(d**4)

    merged = [members for members, reduction in clusters(moments, directions=1) if reduction]
    assert merged == [["power"], ["power"]]
    merged = [members for members, reduction in clusters(moments, directions=6) if reduction]
    assert merged == [["power", "subtract"], ["power", "subtract"]]


def outcomes(z, x):
    """Read values that lead back to two others in several places, some of them reductions."""
    first, second = anp.exp(-(z**2)), anp.exp(-((z - x[0]) ** 2))
    mixed = first + 2.0 * second
    part = z * first / mixed + (z - x[0]) * second / mixed
    parts = [anp.ravel(part), anp.ravel(anp.cumsum(anp.sin(mixed))), anp.ravel(part * second) + x[1]]
    return anp.concatenate([*parts, anp.reshape(anp.sum((z - x[0]) * second / mixed), (1,))])


def moduli(z):
    """Read a real function of complex numbers in several places, some of them reductions."""
    r = anp.abs(z)
    ends = anp.array([anp.sum(r * 2.0), anp.sum(anp.imag(z)), anp.max(r), anp.sum(anp.imag(z) ** 2)])
    return anp.concatenate([anp.cumsum(anp.sin(r)), ends, anp.ravel(anp.sum(r**2, axis=0))])


def test_operations_of_one_size_go_into_all_results_if_these_lead_back_to_few_values():
    def fun(x, slope=anp.tanh):
        z = TABLE @ x
        between = slope(z * x[0])
        return anp.concatenate([between * z, anp.cumsum(between + z), anp.cos(between)])

    apart = [["multiply"], ["add"], ["cos"], ["tanh", "multiply"]]
    merged = [["multiply", "tanh", "multiply"], ["add", "tanh", "multiply"], ["cos", "tanh", "multiply"]]
    assert sorted(names for names, _ in clusters(fun, directions=9)) == sorted(apart)
    assert sorted(names for names, _ in clusters(fun, directions=10)) == sorted(merged)
    check(fun)
    dear = lambda x: fun(x, gammaln)  # noqa: E731 # whose formula is evaluated once
    assert sorted(names for names, _ in clusters(dear, directions=10)) == sorted(
        [*apart[:3], ["gammaln", "multiply"]]
    )
    check(dear)


def test_operations_that_lead_back_to_many_values_are_swept_once():
    def fun(x):
        many = TABLE @ x
        for k in range(5):
            many = many * (TABLE @ anp.sin(x * k + 1.0))
        return anp.concatenate([many * x[0], many * x[1]])

    *_, product, first, second = [names for names, _ in clusters(fun)]
    assert (product, first, second) == (["multiply"] * 5, ["multiply"], ["multiply"])
    check(fun)


def test_what_is_read_as_a_whole_is_swept_once():
    assert clusters(softmax, directions=9) == [(["exp"], None), (["divide"], None)]
    assert clusters(softmax) == [(["exp"], "sum"), (["divide", "exp"], None)]  # twice, to spare a product
    mixed = clusters(lambda x: anp.concatenate([y := anp.sin(x), anp.array([anp.sum(y * 2.0), anp.sum(y)])]))
    assert mixed == [(["sin"], None), (["multiply"], "sum")]
    tape = record(lambda x: anp.sum(anp.sin(x)) * anp.cos(x), X)
    facts = facts_of(tape)
    chunk = Chunk((0,), (1,), np.arange(1, 2), 12, 12, 12)  # it ends with what is added up behind it
    (step,) = compile_array_sweep(tape, facts, chunk, 12).steps
    assert step.index == 1
    assert step.reduction is None


def test_not_more_than_four_reductions_take_the_same_operation_in():
    def several(count):
        def fun(x):
            d = anp.sin(x[:, None] - x)
            return anp.array([anp.sum(d * (k + 1.0)) for k in range(count)])

        check(fun)
        return len(clusters(fun))

    assert several(4) == 4
    assert several(5) == 6


def test_a_few_values_are_multiplied_before_they_are_broadcast():
    assert clusters(lambda x: (x[:4] * x[4:8])[:, None] + TABLE) == [(["multiply"], None), (["add"], None)]
    fun = lambda x: (x[:12] * x[::-1]) + TABLE  # noqa: E731
    assert clusters(fun) == [(["multiply"], None), (["add"], None)]
    check(fun)
    assert clusters(lambda x: anp.sin(x) + TABLE) == [(["add", "sin"], None)]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_less_precise_values_are_reduced_apart(dtype):
    x = X.astype(dtype)
    fun = lambda x: anp.sum(TABLE.astype(dtype) * x, axis=1)  # noqa: E731
    assert clusters(fun, x) == [(["multiply"], None)]
    jac = parallel_jacobian(fun)(x)
    assert jac.dtype == jacobian(fun)(x).dtype
    np.testing.assert_allclose(jac, TABLE.astype(dtype), rtol=1e-2)


def test_complex_values_are_reduced_apart():
    fun = lambda x: anp.real(anp.sum(anp.exp(1j * TABLE * x), axis=1))  # noqa: E731
    assert all(reduction is None for _, reduction in clusters(fun))
    check(fun)


def test_calls_that_the_weights_do_not_cover_are_steps_of_their_own():
    assert clusters(lambda x: anp.sum(TABLE * x, axis=1, where=TABLE > 0.0)) == [(["multiply"], None)]
    assert clusters(lambda x: anp.linalg.norm(TABLE * x, ord=1, axis=1)) == [(["multiply"], None)]


@pytest.mark.parametrize("order", [1.0, 0.5, -1.0, float("nan")])
def test_norms_without_a_derivative_raise_what_autograd_does_also_with_a_plan_for_others(order):
    norms = {"order": 3.0}
    fun = lambda x: anp.linalg.norm(anp.tanh(TABLE * x), norms["order"], 1)  # noqa: E731
    jac = parallel_jacobian(fun)
    jac(X)
    norms["order"] = order
    with pytest.raises(NotImplementedError, match="Gradient of norm not implemented for ord="):
        jac(X)
    assert jac.cache_info()[:2] == (1, 1)


def test_errors_in_weights_name_the_call():
    tape, sweep = compiled(pairs, X)
    (step,) = [step for step in sweep.steps if isinstance(step, ClusterStep)]

    def fail(*_args, **_keywords):
        raise ZeroDivisionError

    object.__setattr__(step, "reduction", step.reduction._replace(rule=Bulk(weigh=fail)))
    with pytest.raises(ZeroDivisionError) as caught:
        sweep.run(tape, None)
    assert caught.value.__notes__ == [f"in a derivative rule of sum, entry {step.index} of the tape"]


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_infinite_derivatives_stay_where_they_are(method):
    """Also in blocks of directions: what is zero in a diagonal is not multiplied."""
    fun = lambda x: anp.sum(anp.sqrt(x.reshape(4, 3)), axis=1)  # noqa: E731
    x = np.linspace(0.0, 1.1, 12)
    want = np.zeros((4, 12))
    with np.errstate(divide="ignore"):
        want[np.arange(12) // 3, np.arange(12)] = 0.5 / np.sqrt(x)
    for most in (None, 5):
        tape, sweep = compiled(fun, x, adjoint_mode=method == "adjoint")
        found = sweep.run(tape, None, most)
        np.testing.assert_allclose(found if method == "adjoint" else found.T, want, rtol=1e-14)


def test_blocks_of_a_diagonal_are_not_written_out():
    scale = np.linspace(1.0, 2.0, 5)
    fun = lambda x: anp.sum(anp.sqrt(x)) * scale  # noqa: E731
    x = np.linspace(0.1, 1.0, 20_000)
    jac = parallel_jacobian(fun, machines=1, method="tangent", memory_limit=1_000_000)
    jac(x)
    assert traced_peak(lambda: jac(x)) < 3_000_000  # of which the Jacobian is 800 kB


@pytest.mark.parametrize("reduce", [anp.sum, anp.mean, anp.max, logsumexp], ids=lambda f: f.__name__)
def test_plans_with_reductions_pickle(reduce):
    times, x = np.linspace(0.0, 1.0, 300), np.linspace(0.0, 1.0, 80)
    jac = parallel_jacobian(lambda x: reduce(anp.exp(-((times[:, None] - x) ** 2)), axis=1), machines=1)
    plan = jac.plan(x)
    (sweep,) = plan.sweeps
    steps = sweep.behind.steps if isinstance(sweep, RowSweep) else sweep.steps
    assert any(isinstance(step, ClusterStep) and step.reduction for step in steps)
    tape = jac.tape(x)
    np.testing.assert_array_equal(execute(pickle.loads(pickle.dumps(plan)), tape), jac(x))  # noqa: S301


def test_large_tables_are_swept_by_array_steps():
    times = np.linspace(0.0, 1.0, 200)
    density = lambda x: anp.mean(anp.exp(-((times[:, None] - x) ** 2)), axis=1)  # noqa: E731
    plan = parallel_jacobian(density, machines=1).plan(np.linspace(0.0, 1.0, 60))
    assert isinstance(plan.sweeps[0], ArraySweep)


SHAPES = ((3, 4), (3, 1), (1, 4), (4,), (), (1, 1))
UNARY = (anp.sin, anp.exp, anp.tanh, lambda v: v**2, lambda v: 1.0 - v)
BINARY = (anp.multiply, anp.add, anp.subtract, lambda a, b: a / (2.5 + anp.cos(b)), anp.maximum)
REDUCTIONS = (anp.sum, anp.mean, anp.max, anp.prod, logsumexp)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    steps=st.lists(st.tuples(*[st.integers(0, 60)] * 4), min_size=2, max_size=14),
    axis=st.sampled_from([None, 0, 1, -1, (0, 1)]),
)
def test_random_tables(steps, axis):
    def fun(x):
        values = [x[: int(np.prod(shape))].reshape(shape) for shape in SHAPES]
        results = []
        for kind, operation, a, b in steps:
            left, right = values[-1 - a % len(values)], values[-1 - b % len(values)]
            if kind % 4 == 0:
                values.append(UNARY[operation % len(UNARY)](left * 0.5))
            elif kind % 4 < 3:
                values.append(BINARY[operation % len(BINARY)](left, right))
            else:
                here = axis if anp.ndim(left) == 2 else None
                reduced = REDUCTIONS[operation % len(REDUCTIONS)](anp.tanh(left), axis=here, keepdims=True)
                values.append(reduced)
                results.append(anp.ravel(reduced))
        return anp.concatenate([*results, anp.ravel(values[-1])])

    check(fun)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(data=st.data())
def test_contractions_are_sums_of_products(data):
    space = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    operand = tuple(n if data.draw(st.booleans()) else 1 for n in space)[data.draw(st.integers(0, 1)) :]
    axes = tuple(a for a in range(len(space)) if data.draw(st.booleans()))
    result = tuple(n for a, n in enumerate(space) if a not in axes)
    partial = RANDOM.standard_normal([n if data.draw(st.booleans()) else 1 for n in space])
    letters_of = (letters(operand, space), letters(space, space, axes))
    factors = np.broadcast_to(partial, space)
    for given_shape, shape, ends in (
        (operand, result, letters_of),
        (result, operand, letters_of[::-1]),
    ):
        count = int(np.prod(given_shape, dtype=int))
        wide = (len(space) - len(operand)) * (1,) + operand
        kept = [1 if a in axes else n for a, n in enumerate(space)]
        aligned, wanted = (wide, kept) if shape is result else (kept, wide)
        summed = tuple(a + 1 for a in range(len(space)) if wanted[a] == 1)
        for start, rows in ((0, RANDOM.standard_normal((3, count))), (2, np.eye(count))):
            batch = Rows(start, rows.reshape(len(rows), *given_shape))
            found = contracted(batch, partial, space, ends, shape)
            want = (rows.reshape(len(rows), *aligned) * factors).sum(axis=summed).reshape(len(rows), *shape)
            np.testing.assert_allclose(found.dense().rows, want, atol=1e-13)
            assert found.start == start
        values = RANDOM.standard_normal(given_shape)
        diagonal = Diagonal(5, values, 5, 5 + count)
        found = contracted(diagonal, partial, space, ends, shape)
        rows = np.diag(values.ravel()).reshape(count, *aligned)
        want = (rows * factors).sum(axis=summed).reshape(count, *shape)
        np.testing.assert_allclose(found.dense().rows, want, atol=1e-13)
        assert found.start == 5
        if count > 1:
            part = contracted(diagonal._replace(start=6), partial, space, ends, shape)
            np.testing.assert_allclose(part.dense().rows, want[1:], atol=1e-13)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_scaled_diagonals_are_arrays_of_the_same_shape(shape):
    values = np.array(RANDOM.standard_normal(shape))
    diagonal = Diagonal.of(values, 2, 2, 2 + values.size)
    for partial in 2.0, np.full(shape, 2.0), np.full((1, *shape), 2.0), np.float64(2.0):
        found = _scaled_diagonal(diagonal, partial, values)
        assert isinstance(found.values, np.ndarray)
        np.testing.assert_array_equal(found.values, np.asarray(2.0 * values), strict=True)
        assert found[2:] == diagonal[2:]


def test_a_norm_of_an_order_without_a_rule_raises_also_where_a_plan_is_used_again():
    """The plan is that of another order, whose weights are known."""
    jac = parallel_jacobian(lambda x, order: anp.linalg.norm(anp.sin(x), order, 1), machines=1)
    x = np.arange(1.0, 13.0).reshape(3, 4)
    np.testing.assert_allclose(
        jac(x, 3.0), jacobian(lambda x: anp.linalg.norm(anp.sin(x), 3.0, 1))(x), rtol=1e-12
    )
    with pytest.raises(Exception) as caught:  # noqa: PT011 (autograd's own, of its rule)
        jac(x, 0.5)
    assert any("norm" in line for line in caught.value.__notes__)
