"""Separators of recorded tapes, through the public functions."""

from dataclasses import replace
from itertools import pairwise

import autograd.numpy as anp
import numpy as np
import pytest

from tapesplit import check_separators, find_separators, parallel_jacobian, profile_widths, record
from tapesplit.cuts.graph import TapeGraph
from tapesplit.cuts.separators import Separator
from tapesplit.cuts.width_profile import WidthProfile, width_profile
from tapesplit.errors import NothingToPlanError, SeparatorError, TapesplitError

WIDTHS = [50, 3, 40, 2, 30]
LAYERS = [np.cos(np.arange(m * n)).reshape(m, n) for n, m in pairwise(WIDTHS)]


def layers(x):
    for layer in LAYERS:
        x = anp.tanh(layer @ x)
    return x


def test_found_separators_are_certified_and_mutated_ones_refused():
    tape = record(layers, np.ones(50))
    found = find_separators(tape, machines=2)
    assert {2, 3} <= {separator.width for separator in found}
    check_separators(tape, found)
    wider = replace(found[0], width=found[0].width + 1)
    for wrong in ((wider, *found[1:]), tuple(reversed(found)), (*found, found[0])):
        with pytest.raises(SeparatorError):
            check_separators(tape, wrong)


def test_the_ends_of_a_tape_are_no_separators():
    """A link from the inputs to themselves, or from the output to itself, computes nothing."""
    tape = record(layers, np.ones(50))
    for entry in (0, tape.output):
        end = Separator((entry,), np.size(tape.values[entry]), "cost")
        with pytest.raises(SeparatorError, match=r"separator 1 of 1 repeats .*puts; drop it"):
            check_separators(tape, (end,))


def test_the_profile_shows_the_narrow_places():
    profile = profile_widths(record(layers, np.ones(50)))
    assert min(profile.minimal) == 2
    assert np.all(profile.minimal <= profile.live)


PROFILE = """\
   entry      live   minimal  elements
       1         3         3  ########################################
       3         3         3  ########################################
       5         2         2  ###########################               cut, 2 wide
       8         2         2  ###########################"""


def test_the_profile_as_text_is_pinned():
    assert str(profile_widths(record(layers, np.ones(50)), shares=4)) == PROFILE


def test_the_profile_marks_the_separators_that_are_chosen():
    tape = record(layers, np.ones(50))
    profile = profile_widths(tape)
    assert profile.separators == find_separators(tape)
    assert np.all(np.diff(profile.places) >= 0)
    assert 0 < profile.places[0] <= profile.places[-1] <= len(profile.entries)


def test_a_separator_is_placed_by_the_edges_before_it():
    graph = TapeGraph(
        entries=np.arange(5), widths=np.array([9, 9, 1, 9, 9]), edges=np.array([0, 30, 10, 20, 40]),
        child=np.array([1, 2, 3, 4]), parent=np.array([0, 1, 2, 3]), inputs=1, output=4,
    )  # fmt: skip
    profile = width_profile(graph, (Separator((2,), 1, "minimal"),), shares=2)
    assert profile.entries.tolist() == [3, 4]  # 60 and 100 of 100 edges
    assert profile.places.tolist() == [pytest.approx(40 / 60)]
    assert str(profile).splitlines()[1].endswith("  cut, 1 wide")


@pytest.mark.parametrize(
    ("widths", "is_logarithmic", "heights"),
    [((5, 100), False, (0.05, 1.0)), ((4, 128), True, (1 / 6, 1.0)), ((-1, 7), False, (0.0, 1.0))],
)
def test_widths_that_differ_by_more_than_20_have_a_logarithmic_scale(widths, is_logarithmic, heights):
    columns = np.array(widths)
    profile = WidthProfile(np.arange(2), columns, columns)
    assert profile.is_logarithmic is is_logarithmic
    assert [profile.height(width) for width in widths] == pytest.approx(heights)
    assert str(profile).splitlines()[0].endswith("(logarithmic)") is is_logarithmic


def test_many_cuts_in_one_share_are_counted():
    columns, cuts = np.array([7]), tuple(Separator((i,), 2 + i, "cost") for i in range(4))
    profile = WidthProfile(columns, columns, columns, cuts, np.linspace(0.1, 1.0, 4))
    assert str(profile).endswith("  4 cuts, 2 to 5 wide")
    few = replace(profile, separators=cuts[:3], places=profile.places[:3])
    assert str(few).endswith("  cuts, 2, 3, 4 wide")


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_profile_is_drawn_in_the_format_of_the_ending(tmp_path, suffix, start):
    if suffix != "svg":
        pytest.importorskip("matplotlib")
    path = tmp_path / f"widths.{suffix}"
    profile_widths(record(layers, np.ones(50))).draw(path)
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["widths.dot", "widths"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"let it end in \.svg, \.png or \.pdf$"):
        profile_widths(record(layers, np.ones(50))).draw(tmp_path / name)


def test_the_separators_are_those_of_a_plan():
    tape = record(layers, np.ones(50))
    plan = parallel_jacobian(layers, machines=1).plan(np.ones(50))
    assert find_separators(tape) == plan.separators
    assert len(find_separators(tape, machines=2)) > len(plan.separators)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda tape: find_separators(layers), TypeError, "a tape is needed, but got function; .*record"),
        (lambda tape: check_separators(layers, ()), TypeError, "a tape is needed, but got function"),
        (
            lambda tape: check_separators(tape, ("a",)),
            TypeError,
            "separator 1 of 1 must be .* got 'a'; .*find_",
        ),
        (lambda tape: check_separators(tape, None), TypeError, "a sequence of separators .* got NoneType; "),
        (lambda tape: check_separators(tape, (2, 3)), TypeError, "separator 1 of 2 must be .* got 2; "),
        (lambda tape: profile_widths(None), TypeError, "a tape is needed, but got NoneType"),
        (lambda tape: find_separators(tape, max_links="3"), TypeError, "max_links must be .* got '3'"),
        (lambda tape: find_separators(tape, max_links=0), ValueError, "max_links must be .* got 0"),
        (lambda tape: find_separators(tape, machines=None), TypeError, "machines must be .* got None"),
        (lambda tape: profile_widths(tape, shares=0), ValueError, "shares must be a positive integer"),
    ],
)
def test_wrong_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(record(layers, np.ones(50)))
    assert isinstance(caught.value, TapesplitError)


def test_an_output_that_does_not_depend_on_the_input_has_neither_separators_nor_widths():
    with pytest.warns(UserWarning, match="independent"):
        tape = record(lambda x: np.ones(3), np.ones(2))
    assert find_separators(tape) == ()
    check_separators(tape, ())
    for wrong in (profile_widths, lambda tape: check_separators(tape, [Separator((0,), 2, "cost")])):
        with pytest.raises(NothingToPlanError, match="the value of <lambda> does not depend on its input"):
            wrong(tape)
