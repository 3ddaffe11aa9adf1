"""Separators of recorded tapes, through the public functions."""

from dataclasses import replace
from itertools import pairwise

import autograd.numpy as anp
import numpy as np
import pytest

from tapesplit import check_separators, find_separators, profile_widths, record
from tapesplit.errors import SeparatorError

WIDTHS = [50, 3, 40, 2, 30]
LAYERS = [np.cos(np.arange(m * n)).reshape(m, n) for n, m in pairwise(WIDTHS)]


def layers(x):
    for layer in LAYERS:
        x = anp.tanh(layer @ x)
    return x


def test_found_separators_are_certified_and_mutated_ones_refused():
    tape = record(layers, np.ones(50))
    found = find_separators(tape)
    assert {2, 3} <= {separator.width for separator in found}
    check_separators(tape, found)
    wider = replace(found[0], width=found[0].width + 1)
    for wrong in ((wider, *found[1:]), tuple(reversed(found)), (*found, found[0])):
        with pytest.raises(SeparatorError):
            check_separators(tape, wrong)


def test_the_profile_shows_the_narrow_places():
    profile = profile_widths(record(layers, np.ones(50)))
    assert min(profile.minimal) == 2
    assert np.all(profile.minimal <= profile.live)
    assert str(profile)


def test_an_output_that_does_not_depend_on_the_input_has_no_separators():
    with pytest.warns(UserWarning, match="independent"):
        tape = record(lambda x: np.ones(3), np.ones(2))
    assert find_separators(tape) == ()
