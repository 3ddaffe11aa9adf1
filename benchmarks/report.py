"""Command line of a benchmark; table, JSON and plot of measured timings."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.measure import Timing, best

Results = Mapping[str, Sequence[Timing]]

COLORS = {"autograd": "#0072b2", "torch": "#d55e00", "jax": "#009e73"}
"""Color-blind safe, one for each peer."""
_BARS = "bars: ratios of times to reach on a quiet machine; MISSED: slower here"


def asked(module: str, description: str, known: Mapping[str, object], repeat: int) -> argparse.Namespace:
    """Read which of the known problems are to be measured, by default all, and in how many rounds."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=description)
    parser.add_argument("names", nargs="*", metavar="name", help="of a problem; all if none is named")
    parser.add_argument(
        "--repeat", type=int, default=repeat, help="rounds of interleaved measurements (%(default)s)"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"{', '.join(sorted(unknown))}: unknown; choose from {', '.join(known)}")
    options.names = options.names or list(known)
    return options


def milliseconds(seconds: float) -> str:
    """Print a time with three digits in ms."""
    value = 1e3 * seconds
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def heading(peers: Sequence[str]) -> str:
    """Return the head of the table."""
    columns = [f"{'problem':14}{'ours':>8}{'first':>8}{'error':>9}"]
    columns += [f"{peer:>17}" for peer in peers]
    if "jax" in peers:
        columns.append(f"{'jax cold':>17}")
    return (
        "".join(columns)
        + "\n"
        + " " * 14
        + f"{'ms':>8}{'ms':>8}{'':9}"
        + f"{'ms':>9}{'× ours':>8}" * (len(columns) - 1)
    )


def row(name: str, timings: Sequence[Timing], peers: Sequence[str]) -> str:
    """Return one line of the table: above 1 we are faster; cold JAX is set against our first call."""
    ours = best(timings, "tapesplit")
    cells = [f"{name:14}{milliseconds(ours.later):>8}{milliseconds(ours.first):>8}{ours.error:>9.0e}"]
    for peer in peers:
        theirs = best(timings, peer)
        cells.append(f"{milliseconds(theirs.later):>9}{_ratio(theirs.later / ours.later):>8}")
    if "jax" in peers:
        cold = min(timing.first for timing in timings if timing.peer == "jax")
        cells.append(f"{milliseconds(cold):>9}{_ratio(cold / ours.first):>8}")
    return "".join(cells)


def bar_table(bars: Sequence[Bar]) -> str:
    """List the bars, those that do not hold first."""
    lines = [
        f"{'holds' if bar.holds else 'MISSED':8}{bar.problem:16}{bar.what:30}"
        f"{_ratio(bar.ratio):>8}  of {_ratio(bar.least)}"
        for bar in sorted(bars, key=lambda bar: bar.holds)
    ]
    return "\n".join([_BARS, *lines, f"{sum(bar.holds for bar in bars)} of {len(bars)} bars hold"])


def write_json(path: Path, facts: Mapping[str, str], results: Results, bars: Sequence[Bar]) -> None:
    """Write everything that was measured; times in seconds."""
    document = {
        "machine": dict(facts),
        "results": {
            name: [asdict(timing) | {"first": timing.first, "later": timing.later} for timing in timings]
            for name, timings in results.items()
        },
        "bars": [asdict(bar) | {"holds": bar.holds} for bar in bars],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")


def write_plot(path: Path, results: Results, peers: Sequence[str]) -> None:
    """Draw how many times longer than ours each peer takes, on a logarithmic axis."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 1.4 + 0.5 * len(results)), layout="constrained")
    names = list(results)[::-1]
    offsets = {peer: 0.2 * (len(peers) - 1) / 2 - 0.2 * i for i, peer in enumerate(peers)}
    for peer in peers:
        for position, name in enumerate(names):
            ours, theirs = best(results[name], "tapesplit"), best(results[name], peer)
            ratio = theirs.later / ours.later
            y = position + offsets[peer]
            axes.plot([1, ratio], [y, y], color=COLORS[peer], linewidth=1.5)
            axes.plot(ratio, y, "o", color=COLORS[peer], label=peer if position == 0 else None)
            side = {"xytext": (6, 0)} if ratio >= 1 else {"xytext": (-6, 0), "ha": "right"}
            axes.annotate(
                _ratio(ratio), (ratio, y), textcoords="offset points", va="center", fontsize=7, **side
            )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.12)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("time of a later call, in times of tapesplit (left of 1: faster than tapesplit)")
    axes.set_title("Full Jacobians on one core")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=len(peers), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _ratio(value: float) -> str:
    """Print a ratio with two or three digits."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"
