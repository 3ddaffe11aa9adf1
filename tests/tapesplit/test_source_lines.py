"""Plans that are asked for know the user's lines of code; calls do not spend time on them."""

import autograd.numpy as np
import numpy as onp

from tapesplit import parallel_jacobian, record
from tapesplit.draw.fold import fold


def curve(x):
    y = np.sin(x)
    z = y * x[0]
    return np.concatenate([z, [2.0]]) + np.sum(y)


def test_each_entry_of_a_planned_tape_names_its_line():
    first = curve.__code__.co_firstlineno
    plan = parallel_jacobian(curve).plan(onp.ones(3))
    lines = dict(zip((p and p.__name__ for p in plan.structure.primitives), plan.lines, strict=True))
    assert lines["sin"] == f"test_source_lines.py:{first + 1}"
    assert lines["multiply"] == f"test_source_lines.py:{first + 2}"
    assert lines["sum"] == f"test_source_lines.py:{first + 3}"


def test_the_picture_shows_the_line():
    plan = parallel_jacobian(curve, machines=1).plan(onp.ones(3))
    tip = next(group.tip for group in fold(plan).groups if "sin" in group.tip)
    assert "test_source_lines.py:" in tip


def test_recording_for_a_call_notes_no_lines():
    jac = parallel_jacobian(curve)
    jac(onp.ones(3))
    assert record(curve, onp.ones(3)).lines == ()
    assert jac.plan(onp.ones(3)).lines
    assert jac.cache_info().misses == 1
