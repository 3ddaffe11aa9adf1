"""Inverse kinematics: bend a robot arm so that its hand follows a curve.

The arm has more joints than the position of its hand has coordinates, so the Jacobian of the hand is wide:
3 rows, one column per joint. Gauss-Newton steps with the pseudo-inverse turn every joint as little as
possible. The arm is plain scalar Python: thousands of tiny operations, which are swept as one compiled
triangular system.

Run it in the repository, since it imports the file pictures.py beside it:

    python examples/inverse_kinematics.py [joints] [points]

Look at the distance that is left at every point of the curve, and at the time of a Jacobian.
"""

import sys
import time

import autograd
import autograd.numpy as np
import numpy as onp
from pictures import picture

from tapesplit import parallel_jacobian


def joints_of(angles):
    """Position of every joint; the axes of rotation are z, y, z, y, … in the frame of the link before."""
    r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    places = [[0.0, 0.0, 0.0]]
    length = 1.0 / len(angles)
    for k in range(len(angles)):
        c, s = np.cos(angles[k]), np.sin(angles[k])
        a, b = ((0, 1), (2, 0))[k % 2]
        turned = list(r)
        for row in (0, 3, 6):
            turned[row + a] = r[row + a] * c + r[row + b] * s
            turned[row + b] = r[row + b] * c - r[row + a] * s
        r = turned
        places.append([place + length * r[3 * axis] for axis, place in enumerate(places[-1])])
    return places


def hand(angles):
    return np.array(joints_of(angles)[-1])


def reach(jacobian, angles, target, tolerance=1e-12):
    """Turn the joints until the hand is at the target; return the angles and the distance that is left."""
    for _ in range(50):
        place, J = jacobian.value_and_jacobian(angles)
        missing = target - place
        if onp.abs(missing).max() < tolerance:
            break
        angles = angles + onp.linalg.pinv(J) @ missing
    return angles, float(onp.abs(target - hand(angles)).max())


def median_ms(call, times=5):
    spans = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        spans.append(time.perf_counter() - start)
    return 1e3 * float(onp.median(spans))


def draw(poses, curve):
    def on(axes):
        for pose in poses:
            axes.plot(pose[:, 0], pose[:, 2], "-", color="tab:blue", linewidth=0.8)
        axes.plot(curve[:, 0], curve[:, 2], "o", color="black", markersize=3, label="targets of the hand")
        axes.set(xlabel="x", ylabel="z", title=f"{len(poses)} poses of an arm", aspect="equal")
        axes.legend(frameon=False)

    return on


def main(joints=20, points=24):
    turn = onp.linspace(0, 2 * onp.pi, points)
    curve = onp.stack([0.55 + 0.15 * onp.cos(turn), 0.15 * onp.sin(2 * turn), 0.25 * onp.sin(turn)], axis=1)
    jacobian = parallel_jacobian(hand)
    angles = onp.full(joints, 0.1)
    poses, left = [], []
    for target in curve:
        angles, distance = reach(jacobian, angles, target)
        left.append(distance)
        poses.append(onp.array(joints_of(angles)))
    expected = autograd.jacobian(hand)(angles)
    ours, theirs = median_ms(lambda: jacobian(angles)), median_ms(lambda: autograd.jacobian(hand)(angles))
    info = jacobian.cache_info()
    print(f"arm          {joints} joints, {points} targets, at most {max(left):.0e} away from them")
    print(f"Jacobians    {info.hits + info.misses} of 3 × {joints}, plans made: {info.misses}")
    print(f"time         {ours:.2f} ms each, autograd.jacobian {theirs:.1f} ms")
    assert max(left) < 1e-12
    assert onp.abs(jacobian(angles) - expected).max() < 1e-12
    picture("inverse_kinematics", draw(poses, curve))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
