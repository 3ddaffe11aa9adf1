"""Five Jacobians, explained and timed.

For each function this prints the size of its tape, the separators at which the tape is cut, the Jacobian
chain that results, the planned elimination sequence with its machines, what the plan costs against plain
tangent and adjoint mode, the measured time against ``autograd.jacobian``, and the difference of the two
results. It ends with a picture of a tape split.

Run it with ``make run`` or ``python examples/quickstart.py [machines]``.
"""

import sys
import time
from itertools import pairwise
from pathlib import Path

import autograd.numpy as np
import numpy as onp
from autograd import jacobian

from tapesplit import JacobianPlan, parallel_jacobian, record

OUT = Path("out")


def dense_layers(widths, seed):
    """Weights and biases of layers of the given widths."""
    random = onp.random.default_rng(seed)
    weights = [random.standard_normal((b, a)) / onp.sqrt(a) for a, b in pairwise(widths)]
    return weights, [0.1 * random.standard_normal(b) for b in widths[1:]]


def autoencoder():
    """Bottleneck autoencoder 512-256-8-256-512."""
    weights, biases = dense_layers([512, 256, 8, 256, 512], seed=1)

    def f(x):
        for weight, bias in zip(weights, biases, strict=True):
            x = np.tanh(weight @ x + bias)
        return x

    return f, onp.random.default_rng(1).standard_normal(512)


def pipeline(interface=8):
    """Four-stage process pipeline: ten steps on 200 values in each stage, 8 values between the stages."""
    random = onp.random.default_rng(10)
    stages = [
        (
            random.standard_normal((200, 200)) / onp.sqrt(200),
            random.standard_normal((interface, 200)) / 14,
            random.standard_normal((200, interface)) / 3,
        )
        for _ in range(4)
    ]

    def f(x):
        for mix, narrow, widen in stages:
            for _ in range(10):
                x = x + 0.1 * np.tanh(mix @ x) * np.cos(x)
            x = widen @ np.tanh(narrow @ x)
        return x

    return f, onp.random.default_rng(10).standard_normal(200)


def lorenz96():
    """150 Runge-Kutta steps of Lorenz-96 with 40 cells, 4 of them observed."""

    def rate(x):
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + 8.0

    def f(x):
        h = 0.005
        for _ in range(150):
            k1 = rate(x)
            k2 = rate(x + (h / 2) * k1)
            k3 = rate(x + (h / 2) * k2)
            k4 = rate(x + h * k3)
            x = x + (h / 6) * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return x[:4]

    return f, 8.0 + onp.random.default_rng(3).standard_normal(40)


def robot_arm():
    """3-D robot arm with 50 joints, written with Python scalars: pose of the hand."""
    lengths = [0.1 + 0.01 * i for i in range(50)]

    def f(q):
        r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
        position = [0.0, 0.0, 0.0]
        for i in range(50):
            c, s = np.cos(q[i]), np.sin(q[i])
            a, b = ((0, 1), (2, 0), (1, 2))[i % 3]
            turned = list(r)
            for row in (0, 3, 6):
                turned[row + a] = r[row + a] * c + r[row + b] * s
                turned[row + b] = r[row + b] * c - r[row + a] * s
            r = turned
            position = [p + lengths[i] * r[3 * axis] for axis, p in enumerate(position)]
        return np.array(position + r)

    return f, 0.3 * onp.random.default_rng(5).standard_normal(50)


def curve_fit():
    """Curve fit: 6 parameters, 10 000 residuals."""
    t = onp.linspace(0, 5, 10_000)
    y = onp.exp(-t)

    def f(p):
        first = p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t)
        second = p[3] * np.exp(-p[4] * t) * np.sin(p[5] * t)
        return first + second - y

    return f, onp.array([1.0, 0.5, 3.0, 0.7, 2.0, 0.3])


def seconds(call, at_least=0.05, times=9):
    """Median time of a call, repeated for at least a twentieth of a second."""
    spans, total = [], 0.0
    while len(spans) < times and (total < at_least or len(spans) < 3):
        start = time.perf_counter()
        call()
        spans.append(time.perf_counter() - start)
        total += spans[-1]
    return onp.median(spans)


def show(title, f, x, machines) -> JacobianPlan:
    """Explain, check and time one Jacobian."""
    jac = parallel_jacobian(f, machines=machines)
    start = time.perf_counter()
    jac(x)
    first = time.perf_counter() - start
    plan = jac.plan(x)
    print(f"\n=== {title}")
    print(f"tape        {len(record(f, x))} entries")
    widths = [separator.width for separator in plan.separators]
    ends = sorted({min(widths), max(widths)}) if widths else []
    wide = f", {' to '.join(map(str, ends))} elements wide" if widths else ""
    print(f"separators  {len(widths)}{wide}")
    print(plan.describe("normal"))
    start = time.perf_counter()
    expected = jacobian(f)(x)
    theirs = time.perf_counter() - start
    ours = seconds(lambda: jac(x))
    error = onp.abs(jac(x) - expected).max() / onp.abs(expected).max()
    print(
        f"measured    {1e3 * ours:.2f} ms (first call {1e3 * first:.1f} ms), "
        f"autograd.jacobian {1e3 * theirs:.1f} ms: {theirs / ours:.0f} times faster"
    )
    print(f"difference  {error:.1e} of the largest entry")
    assert error < 1e-10
    return plan


def main():
    machines = int(sys.argv[1]) if len(sys.argv) > 1 else None
    problems = (autoencoder, pipeline, lorenz96, robot_arm, curve_fit)
    plans = [
        show(f"({letter}) {build.__doc__}", *build(), machines)
        for letter, build in zip("abcde", problems, strict=True)
    ]
    OUT.mkdir(exist_ok=True)
    picture = OUT / "tape_split.svg"
    plans[0].draw(picture)
    print(f"\npicture     {picture.resolve()}: the split of tape (a)")


if __name__ == "__main__":
    main()
