"""Parts of containers keep their places on the tape; containers get one only where somebody asks for it."""

import autograd.builtins as ab
import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian
from autograd.extend import defvjp, primitive
from autograd.misc.flatten import flatten
from autograd.tracer import getval
from hypothesis import given, settings
from hypothesis import strategies as st

from tapesplit import defvector, parallel_jacobian, record

X = onp.linspace(0.2, 1.3, 6)


@primitive
def total(container):
    """A primitive that takes a whole container."""
    return sum(onp.sum(part) for part in container)


defvjp(total, lambda ans, container: lambda g: type(container)(g * onp.ones_like(part) for part in container))

LAYERS, UNFLATTENED = flatten([(onp.zeros((2, 2)), onp.zeros(2)), (onp.zeros((2, 2)), onp.zeros(2))])
NAMED, BY_NAME = flatten({"rate": 0.0, "loads": onp.zeros(3), "more": [onp.zeros(2), {"x": onp.zeros(1)}]})


def network(w):
    h = onp.ones(2)
    for weights, bias in UNFLATTENED(w):
        h = np.tanh(np.dot(h, weights) + bias)
    return h


def named(w):
    parameters = BY_NAME(w)
    rest, x = parameters["more"]
    return np.concatenate([parameters["rate"] * parameters["loads"], rest[::-1] * x["x"], rest])


def longer(x):
    values = ab.list([x[0], 2.0, np.sin(x)]) + [x[1] * x, 3.0]  # noqa: RUF005 (this is the call)
    return values[-2] * values[0] * values[2]


def extended_on_the_left(x):
    return ((x[0], 1.0) + ab.tuple((x, x * x)))[3] * x[1]  # noqa: RUF005 (this is the call)


def constant_parts(x):
    return ab.dict({"a": x * x, "b": onp.ones(6)})["b"] * ab.list([1.5, x])[0] * x


def dictionaries(x):
    values = ab.dict({"a": x * x, 3: x[0], "constant": onp.ones(6)})
    return values["a"] * values[3]


def slices(x):
    values = ab.tuple((x, x[::-1] * x, np.cos(x)))
    return values[1:][0] * values[-1:][0] * values[::-2][1]


def whole(x):
    values = ab.list([x * x, np.sin(x[:2])])
    return total(values) * values[0]


def slices_and_whole(x):
    values = ab.list([x * x, np.sin(x[:2]), x])
    return total(values) * values[0] + total(values[1:])


def of_a_gradient(x):
    return grad(lambda parameters: np.sum(parameters[0] ** 2 * parameters[1][0] * parameters[0]))(
        (x, [x[0] * x])
    )[0]


def of_a_gradient_with_shared_parts(x):
    def loss(tree):
        return np.sum(tree["u"][0] * tree["u"][1]) + np.sum(np.sin(tree["u"][0] * tree["v"]))

    found = grad(loss)({"u": (x, x * x), "v": x[0]})
    return np.concatenate([found["u"][0], found["u"][1], found["v"] * onp.ones(1)])


@primitive
def energy(pair):
    return onp.sum(pair[0] ** 2) + onp.sum(pair[1] ** 2)


defvjp(energy, lambda ans, pair: lambda g: ab.tuple((2 * g * pair[0], 2 * g * pair[1])))


def of_constants_that_are_added(x):
    """The gradient by the constant is a constant plus what the second term adds to it."""
    constant = onp.linspace(5.0, 6.0, 6)
    found = grad(lambda pair: energy(pair) + np.sum(pair[0] * x))((constant, x))
    return found[0] ** 2 + found[1]


def empty(x):
    return ab.tuple((x[:0], x))[1] * len(ab.list([x]))


FUNCTIONS = {
    network: onp.linspace(-1, 1, LAYERS.size),
    named: onp.linspace(0.5, 2.0, NAMED.size),
    **dict.fromkeys(
        [
            longer,
            extended_on_the_left,
            constant_parts,
            dictionaries,
            slices,
            whole,
            slices_and_whole,
            of_a_gradient,
            empty,
        ],
        X,
    ),
    of_a_gradient_with_shared_parts: X,
    of_constants_that_are_added: X,
}


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_equals_autograd(fun, method):
    jac = parallel_jacobian(fun, method=method)
    for point in (FUNCTIONS[fun], 0.9 * FUNCTIONS[fun] + 0.01):
        expected = jacobian(fun)(point)
        onp.testing.assert_allclose(jac(point), expected, rtol=1e-12, atol=1e-13)
    assert jac.cache_info().misses == 1


@pytest.mark.parametrize(
    "fun", [network, named, longer, slices, dictionaries, of_a_gradient, of_a_gradient_with_shared_parts]
)
def test_containers_that_are_only_taken_apart_are_not_recorded(fun):
    tape = record(fun, FUNCTIONS[fun])
    labels = {tape.label(index) for index in range(len(tape))}
    assert labels.isdisjoint(
        {"container_untake", "container_take", "sparse_add", "make_sequence", "_make_dict"}
    )


@pytest.mark.parametrize("fun", [whole, slices_and_whole])
def test_others_are_recorded_once(fun):
    tape = record(fun, X)
    labels = [tape.label(index) for index in range(len(tape))]
    assert labels.count("make_sequence") == 1


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_vector_rules_of_users_get_all_elements_in_one_axis(method):
    @primitive
    def mixed(pair):
        return pair[0] + 2.0 * pair[1]

    defvjp(mixed, lambda ans, pair: lambda g: (g, 2.0 * g))
    defvector(
        mixed,
        tangents=[lambda T, ans, pair: T[:, :3] + 2.0 * T[:, 3:]],
        adjoints=[lambda A, ans, pair: onp.concatenate([A, 2.0 * A], axis=1)],
    )

    def fun(x):
        return mixed(ab.tuple((np.sin(x[:3]), x[3:]))) * x[0]

    onp.testing.assert_allclose(parallel_jacobian(fun, method=method)(X), jacobian(fun)(X), rtol=1e-14)


@pytest.mark.parametrize("take_apart", [True, False])
def test_containers_may_be_made_of_each_other_many_times(take_apart):
    def fun(x):
        values = ab.list([x])
        nested = ab.tuple((ab.tuple((x, x * x)), x))
        for number in range(500):
            values = values + [x * number]  # noqa: RUF005 (this is the call)
            nested = ab.tuple((nested[0], 0.5 * nested[1] + nested[0][0]))
        return values[300] * nested[1] * (1.0 if take_apart else total(values) + total(nested[0]))

    x = onp.array([0.3, 0.7])
    onp.testing.assert_allclose(parallel_jacobian(fun)(x), jacobian(fun)(x), rtol=1e-10)


def test_parts_of_another_type_keep_their_own_entry():
    """A container of zeros in single precision makes its sum with double precision single."""
    _, unflattened = flatten([onp.zeros(2, onp.float32), onp.zeros(2)])

    def fun(x):
        first, second = unflattened(x)
        return first * second

    x = onp.linspace(0.1, 0.7, 4)
    onp.testing.assert_allclose(parallel_jacobian(fun)(x), jacobian(fun)(x), rtol=1e-6)


def test_containers_of_a_result_and_of_aux():
    jac = parallel_jacobian(lambda x: (x * x, ab.tuple((x, [2.0]))), has_aux=True)
    jacobian_, aux = jac(X)
    onp.testing.assert_array_equal(jacobian_, onp.diag(2 * X))
    onp.testing.assert_array_equal(aux[0], X)


leaves = st.sampled_from([(), (1,), (2,), (2, 1), (3,)]).map(onp.zeros)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.lists(inner, min_size=1, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


def arrays(tree):
    """Return the leaves in the order of a program that reads them backwards."""
    if isinstance(tree, onp.ndarray | onp.generic | float) or hasattr(tree, "ndim"):
        return [tree]
    keys = sorted(tree.keys()) if hasattr(tree, "keys") else range(len(tree))
    return [leaf for key in reversed(keys) for leaf in arrays(tree[key])]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(tree=trees, nested=st.booleans())
def test_random_trees_of_parameters(tree, nested):
    vector, unflattened = flatten(tree)
    point = onp.linspace(0.3, 1.1, vector.size)

    def fun(w):
        product = 1.0
        for number, leaf in enumerate(arrays(unflattened(w))):
            product = product * np.sum(np.sin(leaf + number))
        return product

    def flat_gradient(w):
        return flatten(grad(lambda parameters: fun(flatten(parameters)[0]))(unflattened(w)))[0]

    differentiated = flat_gradient if nested else fun
    expected = jacobian(differentiated)(point)
    onp.testing.assert_allclose(parallel_jacobian(differentiated)(point), expected, rtol=1e-10, atol=1e-12)


@primitive
def tree_energy(tree):
    return sum(onp.sum(leaf**2) for leaf in arrays(tree))


defvjp(tree_energy, lambda ans, tree: lambda g: mapped(lambda leaf: 2.0 * g * leaf, tree))


TRACED = {dict: ab.dict, list: ab.list, tuple: ab.tuple}
PLAIN = {dict: dict, list: list, tuple: tuple}


def mapped(function, tree, makers=TRACED):
    """Apply a function to all leaves; containers can be traced, unless they are asked to be plain."""
    make = makers.get(type(getval(tree)))
    if make is None:
        return function(tree)
    if hasattr(tree, "keys"):
        return make({key: mapped(function, tree[key], makers) for key in tree})
    return make([mapped(function, part, makers) for part in tree])


@settings(derandomize=True, deadline=None, max_examples=80)
@given(tree=trees, seed=st.integers(0, 1000), twice=st.booleans(), makers=st.sampled_from([TRACED, PLAIN]))
def test_random_trees_with_constants_inside_of_gradients(tree, seed, twice, makers):
    random = onp.random.default_rng(seed)

    def fun(x):
        def part(leaf):
            scaled = (leaf + 0.5) * random.uniform(0.5, 1.5)
            return scaled * x[random.integers(3)] if random.integers(2) else scaled

        random.bit_generator.state = onp.random.default_rng(seed).bit_generator.state
        parameters = mapped(part, tree, makers)

        def loss(p):
            total = tree_energy(p)
            for number, leaf in enumerate(arrays(p)):
                total = total + np.sum(np.sin(leaf * x[number % 3])) * ((number + seed) % 2)
            return total + tree_energy(p) * twice

        found = grad(loss)(parameters)
        return np.concatenate([np.ravel(leaf**2) * x[0] for leaf in arrays(found)])

    x = onp.array([0.3, 0.7, 1.1])
    expected = jacobian(fun)(x)
    for method in ("tangent", "adjoint"):
        found = parallel_jacobian(fun, method=method)(x)
        onp.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_traced_keys_have_no_derivative():
    def fun(k):
        return grad(lambda y: ab.dict({1.0: y * y})[k])(3.0)

    with pytest.raises(NotImplementedError, match="VJP of container_untake wrt argnum 0 not defined"):
        parallel_jacobian(fun)(1.0)


def test_parts_with_traced_keys_have_derivatives():
    """autograd refuses to differentiate by the key."""
    assert parallel_jacobian(lambda k: grad(lambda y: ab.dict({1.0: y * y})[k])(3.0 * k))(1.0) == 6.0


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
@pytest.mark.parametrize("name", ["slogdet", "eigh", "svd"])
def test_auxiliary_results_of_decompositions_are_named_as_numpy_does(name, shape):
    options = {"full_matrices": False} if name == "svd" else {}

    def fun(x):
        return np.sum(x) * onp.ones(1), getattr(np.linalg, name)(x, **options)

    x = onp.random.default_rng(0).standard_normal(shape)
    _, found = parallel_jacobian(fun, has_aux=True)(x)
    expected = getattr(onp.linalg, name)(x, **options)
    assert type(found) is type(expected)
    for part, other in zip(found, expected, strict=True):
        onp.testing.assert_array_equal(part, other)
