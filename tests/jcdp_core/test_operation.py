"""Steps and their notation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jcdp_strategies import deterministic

from jcdp_core import Action, ArgumentTypeError, InvalidOperationError, Mode, Operation


@st.composite
def operations(draw):
    i, k, j = sorted(draw(st.sets(st.integers(0, 10**6), min_size=3, max_size=3)))
    if draw(st.booleans()):
        return Operation(
            Action.ACCUMULATE, draw(st.sampled_from([Mode.TANGENT, Mode.ADJOINT])), i, None, i + 1
        )
    return Operation(Action.ELIMINATE, draw(st.sampled_from(Mode)), i, k, j)


@deterministic
@given(operations())
def test_text_reads_back(operation):
    assert Operation.parse(str(operation)) == operation


def test_spaces_are_free():
    assert Operation.parse("  ELI  MUL( 1 4  6 ) ") == Operation(Action.ELIMINATE, Mode.MULTIPLY, 1, 4, 6)


@pytest.mark.parametrize(
    "text",
    ["", "ACC", "ACC TAN 4 5", "ACC TAN (4)", "ELI TAN (1 2 3 4)", "eli tan (1 2 3)", "ELI TAN (1,2,3)"],
)
def test_other_text_is_refused(text):
    with pytest.raises(InvalidOperationError, match="cannot read"):
        Operation.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "ACC TAN (4 6)",
        "ACC TAN (5 4)",
        "ACC MUL (4 5)",
        "ACC ADJ (4 5 6)",
        "ACC TAN (4 4 5)",
        "ELI TAN (4 5)",
        "ELI MUL (4 4 5)",
    ],
)
def test_positions_must_suit_the_action(text):
    with pytest.raises(InvalidOperationError, match="write"):
        Operation.parse(text)


def test_negative_positions_are_refused():
    with pytest.raises(InvalidOperationError):
        Operation(Action.ACCUMULATE, Mode.TANGENT, -1, None, 0)


@pytest.mark.parametrize(
    ("text", "swept", "operands"),
    [
        ("ACC ADJ (3 4)", [3], ()),
        ("ELI TAN (1 3 6)", [3, 4, 5], ((1, 3),)),
        ("ELI ADJ (1 3 6)", [1, 2], ((3, 6),)),
        ("ELI MUL (1 3 6)", [], ((3, 6), (1, 3))),
    ],
)
def test_what_a_step_sweeps_and_consumes(text, swept, operands):
    operation = Operation.parse(text)
    assert list(operation.swept) == swept
    assert operation.operands == operands


@pytest.mark.parametrize(
    ("action", "mode"), [("ACC", "TAN"), (Action.ACCUMULATE, "TAN"), ("ACC", Mode.TANGENT)]
)
def test_action_and_mode_are_not_text(action, mode):
    with pytest.raises(ArgumentTypeError, match=rf"{action!r}, {mode!r}: these must be an Action and a M"):
        Operation(action, mode, 0, None, 1)


def test_only_text_is_read():
    with pytest.raises(InvalidOperationError, match="cannot read 3 as a step"):
        Operation.parse(3)


def test_endless_positions_are_refused():
    with pytest.raises(InvalidOperationError, match=r"cannot read 'ACC TAN .*\.\.\..*' as a step") as caught:
        Operation.parse(f"ACC TAN (0 1{'0' * 5000})")
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    "positions", [(0.0, 1, 2), (0, "1", 2), (0, 1, None), (False, 1, 2), (None, None, 2)]
)
def test_positions_are_integers(positions):
    with pytest.raises(ArgumentTypeError, match=r"\(.*\): these are no positions; give an int"):
        Operation(Action.ELIMINATE, Mode.TANGENT, *positions)
