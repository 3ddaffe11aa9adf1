"""Elements of a chunk and where they come from."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian
from sweep_forms import forced

from tapesplit import parallel_jacobian
from tapesplit.recording.recorder import record
from tapesplit.rules import index_maps, joint_index_map
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps.unknowns import number_elements

MOVES = {
    "numbers": lambda x: anp.array([x[0], 7.0, x[3], x[0]]),
    "parts with constants": lambda x: anp.concatenate([x[1:], np.ones(2), x[::-1]]),
    "parts without elements": lambda x: anp.concatenate([x[:0], x[2:], x[4:], x[:1], x[:0]]),
    "the same part twice": lambda x: anp.concatenate([x, x]),
    "one argument": lambda x: anp.roll(x, 1),
}
INPUT = np.arange(4) + 0.5


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_joint_maps_agree_with_those_of_each_argument(move):
    tape = record(move, INPUT)
    entry = tape[len(tape) - 1]
    argument, source = joint_index_map(entry)
    for number, argnum in enumerate(entry.argnums):
        alone = entry._replace(argnums=(argnum,), parents=(entry.parents[number],))
        (expected,) = index_maps(alone)
        assert np.flatnonzero(argument == number).tolist() == expected.targets.tolist()
        assert source[argument == number].tolist() == expected.sources.tolist()


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_moved_elements_lead_to_where_they_were_computed(move):
    tape = record(lambda x: move(move(anp.sin(x))[:4]), INPUT)
    facts = facts_of(tape)
    elements = number_elements(tape, facts, np.arange(len(tape)), 1)
    values = np.concatenate([np.ravel(entry.value) for entry in tape])
    assert values[elements.origin].tolist() == values.tolist()
    assert elements.unknowns == 2 * INPUT.size  # the input and its sine; the moves compute nothing
    moved = elements.unknown >= 0
    assert elements.origin[moved].max() < elements.unknowns
    assert elements.unknown[moved].tolist() == elements.origin[moved].tolist()
    assert (elements.unknown[~moved] == -1).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 5000])
def test_casts_to_less_precise_types_move_every_element(dtype, size):
    tape = record(lambda x: anp.array([x, 2.0 * x], dtype=dtype)[1, ::-1], np.linspace(0.1, 1.0, size))
    (joined,) = (entry for entry in tape if entry.value.shape == (2, size))
    argument, source = joint_index_map(joined)
    assert argument.tolist() == [0] * size + [1] * size
    assert source.tolist() == [*range(size)] * 2


@pytest.mark.parametrize("form", ["systems", "arrays"])
def test_results_of_one_shape_may_have_parts_of_different_shapes(monkeypatch, form):
    def f(x):
        y = anp.sin(x)
        parts = [y[:2], y[1:2], y[2:]], [y[:2], y[1:3], y[3:]]
        return anp.concatenate([x[0] * anp.concatenate(part) for part in parts])

    forced(monkeypatch, form)
    got = parallel_jacobian(f, method="tangent", machines=1)(INPUT)
    np.testing.assert_allclose(got, jacobian(f)(INPUT), rtol=0, atol=1e-15)
