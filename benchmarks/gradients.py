"""Gradients, the worst case for a tool that plans: ``python -m benchmarks.gradients``.

A function with one output needs one adjoint sweep, which is what ``autograd.grad`` does; at most 1.2 times
its time is allowed. Each problem's outputs are summed to one number, as a scalar and as an array of one row.
"""

import sys

import autograd
import autograd.numpy as anp
from threadpoolctl import threadpool_limits

from benchmarks import problems
from benchmarks.measure import Variant, measure
from benchmarks.report import asked, milliseconds
from tapesplit import parallel_jacobian

ALLOWED = 1.2


def variants(name: str) -> list[Variant]:
    """Return autograd's and our gradient of the sum, and the same as a Jacobian of one row."""
    f, x = problems.get(name, "autograd")

    def total(x):
        return anp.sum(f(x))

    def one_row(x):
        return anp.reshape(anp.sum(f(x)), (1,))

    def ours(fun):
        jac = parallel_jacobian(fun, machines=1)
        return lambda: jac(x).reshape(x.shape)

    return [
        Variant("autograd", "grad", lambda: lambda: autograd.grad(total)(x)),
        Variant("autograd", "jacobian", lambda: lambda: autograd.jacobian(one_row)(x).reshape(x.shape)),
        Variant("tapesplit", "scalar", lambda: ours(total)),
        Variant("tapesplit", "row", lambda: ours(one_row)),
    ]


def main() -> int:
    """Measure and report; 1 if a gradient takes more than 1.2 times autograd's time."""
    options = asked("gradients", __doc__, problems.PROBLEMS, repeat=11)
    print(f"{'problem':16}{'grad':>12}{'ours':>12}{'of it':>7}{'jacobian':>12}{'ours':>12}{'of it':>7}")
    missed = 0
    with threadpool_limits(1):
        for name in options.names:
            grad, jacobian, scalar, row = measure(variants(name), repeat=options.repeat)
            shares = scalar.later / grad.later, row.later / jacobian.later
            missed += max(shares) > ALLOWED
            cells = [
                f"{milliseconds(theirs.later):>9} ms{milliseconds(ours.later):>9} ms{share:>7.2f}"
                for theirs, ours, share in zip((grad, jacobian), (scalar, row), shares, strict=True)
            ]
            print(f"{name:16}{''.join(cells)}  {'holds' if max(shares) <= ALLOWED else 'MISSED'}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
