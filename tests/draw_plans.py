"""Plans of functions that the tests of the views share."""

import autograd.numpy as np
import numpy as onp

from tapesplit import Callback, parallel_jacobian, record
from tapesplit.planning.planner import PlanOptions, make_plan
from tapesplit.structures.structure import structure_of


def bottleneck(x):
    """Map 12 values through 2 to 9."""
    random = onp.random.default_rng(0)
    first, second, third, last = (
        random.standard_normal(shape) for shape in ((10, 12), (2, 10), (10, 2), (9, 10))
    )
    return last @ np.tanh(third @ (second @ np.tanh(first @ x)))


def two_links():
    """Plan the bottleneck with one cut, which is the narrowest however cuts are chosen."""
    tape = record(bottleneck, onp.linspace(0.1, 1.0, 12))
    return make_plan(tape, structure_of(tape), PlanOptions(1, False, "auto", "runtime", None))


def scalars(x, steps=40):
    """Compute with single numbers, as loops over elements do, on a tape of 34 entries a step."""
    for step in range(steps):
        y = [np.sin(x[i]) * x[(i + 1) % 4] + 0.1 * x[i] for i in range(4)]
        x = np.array(y if step % 20 else [y[0] + y[1] + y[2] + y[3]] * 4)
    return x


def plan_of(fun, n, **options):
    return parallel_jacobian(fun, **({"machines": 1} | options)).plan(onp.linspace(0.1, 1.0, n))


def records_of(fun, n):
    """Plan and measured tasks of one run."""
    runs = []
    callback = Callback(finish=lambda plan, records: runs.append((plan, records)))
    parallel_jacobian(fun, machines=1, callback=callback)(onp.linspace(0.1, 1.0, n))
    return runs[-1]
