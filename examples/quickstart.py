"""Five Jacobians, explained and timed.

For each function this prints the size of its tape, the separators at which the tape is cut, the Jacobian
chain that results, the planned elimination sequence with its machines, what the plan costs against plain
tangent and adjoint mode, the measured time against ``autograd.jacobian``, and the difference of the two
results. It ends with a picture of a tape split.

Run it with ``make run`` or ``python examples/quickstart.py [machines [divisor]]``. A divisor from 2 to 10
makes the problems so many times smaller, for a short run.
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


def make_autoencoder(width):
    """Return title, function and input of a bottleneck autoencoder."""
    widths = [width, width // 2, 8, width // 2, width]
    weights, biases = dense_layers(widths, seed=1)

    def autoencoder(x):
        for weight, bias in zip(weights, biases, strict=True):
            x = np.tanh(weight @ x + bias)
        return x

    title = f"Bottleneck autoencoder {'-'.join(map(str, widths))}"
    return title, autoencoder, onp.random.default_rng(1).standard_normal(width)


def make_pipeline(steps):
    """Return title, function and input of a process pipeline of four stages."""
    random = onp.random.default_rng(10)
    stages = [
        (
            random.standard_normal((200, 200)) / onp.sqrt(200),
            random.standard_normal((8, 200)) / 14,
            random.standard_normal((200, 8)) / 3,
        )
        for _ in range(4)
    ]

    def pipeline(x):
        for mix, narrow, widen in stages:
            for _ in range(steps):
                x = x + 0.1 * np.tanh(mix @ x) * np.cos(x)
            x = widen @ np.tanh(narrow @ x)
        return x

    title = (
        f"Four-stage process pipeline: {steps} step{'s' * (steps > 1)} on 200 values in each stage, "
        "8 values between the stages"
    )
    return title, pipeline, onp.random.default_rng(10).standard_normal(200)


def make_lorenz96(steps):
    """Return title, function and input of Lorenz-96 with 40 cells."""

    def rate(x):
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + 8.0

    def lorenz96(x):
        h = 0.005
        for _ in range(steps):
            k1 = rate(x)
            k2 = rate(x + (h / 2) * k1)
            k3 = rate(x + (h / 2) * k2)
            k4 = rate(x + h * k3)
            x = x + (h / 6) * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return x[:4]

    title = f"{steps} Runge-Kutta steps of Lorenz-96 with 40 cells, 4 of them observed"
    return title, lorenz96, 8.0 + onp.random.default_rng(3).standard_normal(40)


def make_robot_arm(joints):
    """Return title, function and input of a 3-D robot arm, written with Python scalars."""
    lengths = [0.1 + 0.01 * i for i in range(joints)]

    def robot_arm(q):
        r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
        position = [0.0, 0.0, 0.0]
        for i in range(joints):
            c, s = np.cos(q[i]), np.sin(q[i])
            a, b = ((0, 1), (2, 0), (1, 2))[i % 3]
            turned = list(r)
            for row in (0, 3, 6):
                turned[row + a] = r[row + a] * c + r[row + b] * s
                turned[row + b] = r[row + b] * c - r[row + a] * s
            r = turned
            position = [p + lengths[i] * r[3 * axis] for axis, p in enumerate(position)]
        return np.array(position + r)

    title = f"3-D robot arm with {joints} joints, written with Python scalars: pose of the hand"
    return title, robot_arm, 0.3 * onp.random.default_rng(5).standard_normal(joints)


def make_curve_fit(points):
    """Return title, function and input of a curve fit."""
    t = onp.linspace(0, 5, points)
    y = onp.exp(-t)

    def curve_fit(p):
        first = p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t)
        second = p[3] * np.exp(-p[4] * t) * np.sin(p[5] * t)
        return first + second - y

    return (
        f"Curve fit: 6 parameters, {points} residuals",
        curve_fit,
        onp.array([1.0, 0.5, 3.0, 0.7, 2.0, 0.3]),
    )


PROBLEMS = {
    make_autoencoder: 512,
    make_pipeline: 10,
    make_lorenz96: 150,
    make_robot_arm: 50,
    make_curve_fit: 10_000,
}


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
    numbers = [int(word) for word in sys.argv[1:]]
    machines = numbers[0] if numbers else None
    divisor = numbers[1] if len(numbers) > 1 else 1
    plans = []
    for letter, (make, size) in zip("abcde", PROBLEMS.items(), strict=True):
        title, f, x = make(size // divisor)
        plans.append(show(f"({letter}) {title}", f, x, machines))
    OUT.mkdir(exist_ok=True)
    picture = OUT / "tape_split.svg"
    plans[0].draw(picture)
    print(f"\npicture     {picture.resolve()}: the split of tape (a)")


if __name__ == "__main__":
    main()
