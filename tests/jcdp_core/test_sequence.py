"""Elimination sequences: costs, in-tree, bracketing."""

import pytest
from jcdp_strategies import CHAIN_A

from jcdp_core import (
    ArgumentTypeError,
    EliminationSequence,
    InvalidOperationError,
    InvalidSequenceError,
    JacobianChain,
    Operation,
)

THREE_MACHINES = (
    "ACC TAN (4 5), ELI TAN (4 5 6), ACC ADJ (3 4), ELI ADJ (2 3 4), ACC TAN (1 2), ELI MUL (1 2 4), "
    "ELI ADJ (0 1 4), ELI MUL (0 4 6)"
)


def steps(text):
    return [Operation.parse(step) for step in text.split(",")]


@pytest.mark.parametrize(
    ("step", "cost"),
    [
        ("ACC TAN (0 1)", 3 * 70),
        ("ACC ADJ (0 1)", 2 * 700),
        ("ELI TAN (0 1 3)", 3 * (110 + 130)),
        ("ELI ADJ (0 2 3)", 4 * (700 + 1100)),
        ("ELI MUL (0 2 3)", 4 * 5 * 3),
    ],
)
def test_cost_of_each_kind_of_step(step, cost):
    chain = JacobianChain.from_sizes(
        [3, 2, 5, 4], [7, 11, 13], tangent_costs=[70, 110, 130], adjoint_costs=[700, 1100, 1300]
    )
    assert EliminationSequence.from_operations(chain, steps(step)).costs == (cost,)


def test_in_tree_of_the_paper_example():
    sequence = EliminationSequence.from_operations(CHAIN_A, steps(THREE_MACHINES))
    assert sequence.successors == (1, 7, 3, 5, 5, 6, 7, None)
    assert sequence.predecessors == ((), (0,), (), (2,), (), (3, 4), (5,), (1, 6))
    assert sequence.costs == (10228680, 10364220, 2985336, 8356392, 13263045, 3549960, 1637496, 9204192)
    assert sequence.total == 59589321
    assert len(sequence) == 8


def test_operands_that_no_step_makes_have_no_index():
    sequence = EliminationSequence.from_operations(CHAIN_A, steps(THREE_MACHINES)[2:])
    assert sequence.predecessors == ((), (0,), (), (1, 2), (3,), (4,))
    assert sequence.successors == (1, 3, 3, 4, 5, None)


def test_bracketing_of_the_paper_example():
    sequence = EliminationSequence.from_operations(CHAIN_A, steps(THREE_MACHINES))
    assert sequence.bracketing() == "((Ḟ6 F5) (((F4 F̄3) F2) F̄1))"


def test_steps_beyond_the_chain_are_refused():
    with pytest.raises(
        InvalidSequenceError, match=r"ACC TAN \(6 7\) reaches beyond the chain's last position 6"
    ):
        EliminationSequence.from_operations(CHAIN_A, steps("ACC TAN (6 7)"))


def test_steps_may_be_text_in_the_notation_of_the_paper():
    text = THREE_MACHINES.split(", ")
    assert EliminationSequence.from_operations(CHAIN_A, text) == EliminationSequence.from_operations(
        CHAIN_A, steps(THREE_MACHINES)
    )
    with pytest.raises(
        InvalidOperationError, match=r"cannot read 'ACC MOD \(0 1\)' as a step; write it like"
    ):
        EliminationSequence.from_operations(CHAIN_A, ["ACC MOD (0 1)"])


def test_wrong_kinds_of_arguments_are_named():
    with pytest.raises(ArgumentTypeError, match=r"step 2 is the tuple \(0, 1\), where an Operation is exp"):
        EliminationSequence.from_operations(CHAIN_A, ["ACC TAN (0 1)", (0, 1)])
    with pytest.raises(ArgumentTypeError, match=r"operations is the int 5, where an Iterable is expected"):
        EliminationSequence.from_operations(CHAIN_A, 5)
    with pytest.raises(ArgumentTypeError, match=r"chain is the list \[\], where a JacobianChain is expected"):
        EliminationSequence.from_operations([], CHAIN_A)
    with pytest.raises(ArgumentTypeError, match=r"step 1 is the str 'ACC TAN \(0 1\)', where an Operation"):
        EliminationSequence(("ACC TAN (0 1)",), (1,))


def test_empty_sequences_and_missing_costs_are_refused():
    with pytest.raises(InvalidSequenceError, match="at least one step"):
        EliminationSequence((), ())
    with pytest.raises(InvalidSequenceError, match="1 steps and 2 costs"):
        EliminationSequence(tuple(steps("ACC TAN (0 1)")), (1, 2))


def test_a_sequence_iterates_over_its_steps():
    sequence = EliminationSequence.from_operations(CHAIN_A, steps(THREE_MACHINES))
    assert list(sequence) == list(sequence.operations)
    assert EliminationSequence.from_operations(CHAIN_A, sequence) == sequence


def test_one_text_is_one_step():
    chain = JacobianChain.from_sizes([3, 2], [7])
    sequence = EliminationSequence.from_operations(chain, "ACC TAN (0 1)")
    assert sequence == EliminationSequence.from_operations(chain, ["ACC TAN (0 1)"])
