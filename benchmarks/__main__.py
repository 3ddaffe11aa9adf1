"""Full Jacobians of tapesplit against autograd, torch and JAX: ``python -m benchmarks``.

All libraries run interleaved in one process on one core; each result is checked before it is timed; times are
medians. A peer counts with its faster mode (jacrev or jacfwd), JAX jitted, with ``lax.scan`` for long loops.

    python -m benchmarks                                   all problems, all installed peers
    python -m benchmarks a_bottleneck g_square --peers autograd,torch
    python -m benchmarks --json out/speed.json --plot out/speed.png
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks import report
from benchmarks.bars import AUTOGRAD_BARS, bars
from benchmarks.measure import WrongResultError, machine, measure
from benchmarks.peers import PEERS, missing, variants
from benchmarks.problems import PROBLEMS


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report; 1 if a result is wrong or a bar is missed."""
    options = _options(arguments)
    absent = missing(options.peers)
    peers = [peer for peer in options.peers if peer not in absent]
    facts = machine()
    print("\n".join(f"{key:10} {value}" for key, value in facts.items()))
    if absent:
        print(f"not installed, left out: {', '.join(absent)} (pip install 'tapesplit[bench]')")
    print("\n" + report.heading(peers), flush=True)
    results, found, refused = {}, [], []
    with threadpool_limits(1):
        for name in options.names:
            try:
                results[name] = measure(variants(name, peers), repeat=options.repeat)
            except WrongResultError as error:
                refused.append(name)
                print(f"{name:14} REFUSED: {error}", flush=True)
                continue
            found += bars(name, results[name])
            print(report.row(name, results[name], peers), flush=True)
    print("\n" + report.bar_table(found))
    if options.json:
        report.write_json(options.json, facts, results, found)
    if options.plot:
        report.write_plot(options.plot, results, peers)
    return 1 if refused or not all(bar.holds for bar in found) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="problem", help=f"any of {', '.join(PROBLEMS)}")
    parser.add_argument(
        "--peers", default=",".join(PEERS), help="those to compare with, such as autograd,torch"
    )
    parser.add_argument("--repeat", type=int, default=7, help="rounds of interleaved measurements (7)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all measurements")
    parser.add_argument("--plot", type=Path, metavar="OUT", help="draw the ratios (png, svg, pdf)")
    options = parser.parse_args(arguments)
    options.names = options.names or list(AUTOGRAD_BARS)
    options.peers = options.peers.split(",")
    for given, known in ((options.names, PROBLEMS), (options.peers, PEERS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"{', '.join(unknown)} is unknown; choose from {', '.join(known)}")
    if options.repeat < 1:
        parser.error(f"--repeat is {options.repeat}; at least one round is needed")
    return options


if __name__ == "__main__":
    sys.exit(main())
