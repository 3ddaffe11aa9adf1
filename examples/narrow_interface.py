"""Read a plan, then help it: the same function with a narrow interface.

A field of values evolves, and a second field reacts to it: to a few sensors at the start, and to the mean
of the first field in every step. ``wide`` multiplies by the matrix of that influence, so the second stage
needs all values of the first field, and the plan says so: no interface is narrow. But the matrix has rank
one. ``narrow`` says the same with two vectors, multiplied from the right: now a handful of numbers passes
between the stages, and the plan cuts there.

Run it in the repository, since it imports the file pictures.py beside it:

    python examples/narrow_interface.py [cells]

Look at the widths of the chain, at the planned fma, and at the measured times before and after. "… times less
than all tangent" in the tables compares a plan with plain tangents of the same form of the function; the
ratios at the end compare the two forms.
"""

import sys
import time

import autograd.numpy as np
import numpy as onp
from pictures import picture

from tapesplit import parallel_jacobian
from tapesplit.draw.numbers import count

SENSORS, STEPS = 6, 10


def make_functions(cells):
    """Return the function in its two forms."""
    random = onp.random.default_rng(7)
    first, second = (random.standard_normal((cells, cells)) / onp.sqrt(cells) for _ in range(2))
    sensors = random.standard_normal((SENSORS, cells)) / onp.sqrt(cells)
    response = random.standard_normal((cells, SENSORS))
    profile, weights = random.standard_normal(cells), onp.full(cells, 1.0 / cells)
    influence = onp.outer(profile, weights)

    def evolve(u):
        for _ in range(STEPS):
            u = u + 0.1 * np.tanh(first @ u)
        return u

    def react(v, push):
        for _ in range(STEPS):
            v = v + 0.1 * np.tanh(second @ v + push)
        return v

    def wide(x):
        u = evolve(x)
        return react(response @ (sensors @ u), influence @ u)

    def narrow(x):
        u = evolve(x)
        return react(response @ (sensors @ u), profile * (weights @ u))

    return wide, narrow, random.standard_normal(cells)


def median_ms(call, times=7):
    spans = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        spans.append(time.perf_counter() - start)
    return 1e3 * float(onp.median(spans))


def draw(plans):
    def on(axes):
        labels = ["all tangent", "all adjoint", "planned"]
        for k, (name, plan) in enumerate(plans.items()):
            costs = [plan.baselines["tangent"], plan.baselines["adjoint"], plan.fma]
            bars = axes.bar(onp.arange(3) + 0.4 * k - 0.2, costs, 0.38, label=name)
            axes.bar_label(bars, [count(cost) for cost in costs], fontsize=8)
        axes.set_xticks(range(3), labels)
        axes.yaxis.set_major_formatter(lambda cost, _: count(cost))
        axes.set(ylabel="fma", title="work for the same Jacobian", xlim=(-0.5, 2.5))
        axes.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.07))

    return on


def main(cells=200):
    wide, narrow, x = make_functions(cells)
    plans, results, times = {}, [], []
    for fun in (wide, narrow):
        jacobian = parallel_jacobian(fun, machines=1)
        results.append(jacobian(x))
        plans[fun.__name__] = plan = jacobian.plan(x)
        times.append(median_ms(lambda jacobian=jacobian: jacobian(x)))
        print(f"=== {fun.__name__}: {times[-1]:.2f} ms")
        print(plan.describe("normal"))
        print()
    difference = float(onp.abs(results[0] - results[1]).max() / onp.abs(results[0]).max())
    gain = plans["wide"].fma / plans["narrow"].fma
    print(f"work         narrow takes {gain:.1f} times fewer fma than the plan of wide")
    print(
        f"time         narrow takes {times[0] / times[1]:.1f} times less; recording and overhead count, too"
    )
    print(f"difference   {difference:.0e} of the largest entry")
    assert difference < 1e-13
    assert min(separator.width for separator in plans["narrow"].separators) == SENSORS + 1
    assert gain > 3
    picture("narrow_interface", draw(plans))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
