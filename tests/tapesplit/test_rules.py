"""Every vector rule equals the loop over autograd's own rule, on every line of the table."""

import numpy as np
import pytest
from autograd.extend import defvjp, primitive
from rule_cases import CASES
from rule_cases_scipy import CASES as SCIPY_CASES

from tapesplit import check_vector_rule, defvector
from tapesplit.rules import registered


def _name(primitive):
    return getattr(primitive, "__name__", "primitive").replace("_", "")


TABLE = [
    pytest.param(*line, id=f"{_name(line[0])}-{number}") for number, line in enumerate([*CASES, *SCIPY_CASES])
]


@pytest.mark.parametrize(("primitive", "args", "kwargs"), TABLE)
def test_rule_equals_the_loop_over_autograds_rule(primitive, args, kwargs):
    check_vector_rule(primitive, *args, **kwargs)


def test_every_registered_primitive_is_in_the_table():
    tested = {id(line[0]) for line in (*CASES, *SCIPY_CASES)}
    untested = [p for p in registered() if p.__module__.startswith("autograd") and id(p) not in tested]
    assert [_name(p) for p in untested] == []
