"""Two machines against one: ``python -m benchmarks.machines``.

On the two problems that have two heavy independent halves, two machines must be 1.5 times faster (on two
quiet cores); on all others they must not be more than 5 % slower. Both are compared with autograd first.
"""

import sys

from benchmarks import problems
from benchmarks.measure import Variant, measure
from benchmarks.peers import against_autograd
from benchmarks.report import asked, milliseconds
from tapesplit import parallel_jacobian

HEAVY = ("j_wide_halves", "k_csr_halves")
TURN = 0.15
"""Seconds of a turn: a core that has slept is slow for the first calls, on virtual machines above all."""


def variant(name: str, machines: int) -> Variant:
    """Return our Jacobian on a number of machines."""
    f, x = problems.get(name, "autograd")

    def make():
        jac = parallel_jacobian(f, machines=machines)
        return lambda: jac(x)

    return Variant("tapesplit", f"{machines} machines", make)


def main() -> int:
    """Measure and report; 1 if a bar is missed."""
    options = asked("machines", __doc__, problems.PROBLEMS, repeat=11)
    print(f"{'problem':16}{'1 machine':>12}{'2 machines':>12}{'speed-up':>10}{'bar':>7}")
    missed = 0
    for name in options.names:
        reference, _ = against_autograd(*problems.get(name, "autograd"))
        variants = [reference, variant(name, 1), variant(name, 2)]
        _, one, two = measure(variants, repeat=options.repeat, turn=TURN)
        ratio, least = one.later / two.later, 1.5 if name in HEAVY else 0.95
        missed += ratio < least
        times = f"{milliseconds(one.later):>9} ms{milliseconds(two.later):>9} ms"
        print(
            f"{name:16}{times}{ratio:>10.2f}{least:>7.2f}  {'holds' if ratio >= least else 'MISSED'}",
            flush=True,
        )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
