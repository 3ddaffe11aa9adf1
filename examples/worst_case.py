"""The worst case of the dynamic program: a family of chains whose ratio optimum/DP tends to 1/m.

    python examples/worst_case.py [longest]

Look at the ratios, which come down to 1/m on m machines as chains get longer. Chains of up to 96 links take
ten seconds: the numbers have hundreds of digits.
"""

import sys
from pathlib import Path

from jcdp_core import (
    Problem,
    check_schedule,
    check_sequence,
    comb_sequence,
    makespans,
    schedule_sequence,
    worst_case_bound,
    worst_case_chain,
)

LENGTHS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
MACHINES = (2, 3, 4, 8)
GROWTH = 256
FIGURE = Path("out") / "worst_case.png"


def ratios(length):
    """Return (a schedule that is at least as long as the optimum) / (the dynamic program's), by machines."""
    chain = worst_case_chain(length, GROWTH)
    comb = comb_sequence(chain)
    check_sequence(chain, comb)
    programmed = makespans(Problem(chain, max(MACHINES)))
    found = []
    for machines in MACHINES:
        schedule = schedule_sequence(comb, machines=machines, method="highest_level_first").schedule
        check_schedule(comb, schedule, machines)
        found.append(schedule.makespan / programmed[machines - 1])
        assert found[-1] >= worst_case_bound(Problem(chain, machines))
    return found


def draw(lengths, by_machines, path):
    """Draw the approach to the bound."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for machines, values in by_machines.items():
        (line,) = axes.plot(lengths, values, marker="o", markersize=4)
        axes.axhline(1 / machines, color=line.get_color(), linestyle=":", linewidth=1)
        axes.annotate(
            f"m = {machines}",
            (lengths[-1], values[-1]),
            (8, 0),
            textcoords="offset points",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            color=line.get_color(),
        )
    axes.set(
        xscale="log",
        xlabel="length of the chain q",
        ylabel="optimum / dynamic program",
        title="Worst case: the ratio tends to 1/m (dotted)",
        xticks=lengths,
        xticklabels=lengths,
        ylim=(0, 1.05),
        xlim=(lengths[0] * 0.93, lengths[-1] * 1.35),
    )
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(longest=LENGTHS[-1]):
    lengths = [length for length in LENGTHS if length <= longest]
    by_machines = dict(zip(MACHINES, zip(*map(ratios, lengths), strict=True), strict=True))
    print("optimum / DP, at most      q =", *(f"{length:6}" for length in lengths))
    for machines, values in by_machines.items():
        print(f"m = {machines}, bound 1/m = {1 / machines:.3f}      ", *(f"{value:6.3f}" for value in values))
    draw(lengths, by_machines, FIGURE)
    print(f"picture      {FIGURE.resolve()}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
