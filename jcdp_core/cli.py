"""The commands ``jcdp``, ``jcdp-batch`` and ``jcdp-stats``: arguments in, text and files out."""

import argparse
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, get_args

import jcdp_core
from jcdp_core.batch import run_batch
from jcdp_core.chain_file import read_chains
from jcdp_core.comparison import compare
from jcdp_core.config import key_table, read_config
from jcdp_core.dot import task_tree_dot
from jcdp_core.errors import ConfigError, JcdpError, ResultsError
from jcdp_core.files import check_file, check_folder, choice
from jcdp_core.generator import ChainGenerator, Flavour
from jcdp_core.plot import draw_box_plots, draw_gantt, draw_task_tree, figure_class
from jcdp_core.report import chain_json, chain_text, settings_json, settings_text
from jcdp_core.results import SOLVER_COLUMNS, read_results
from jcdp_core.solvers import Solution
from jcdp_core.statistics import Table, summarize

__all__ = ["main", "main_batch", "main_stats"]

_KEYS: Final = f"""\
keys of the configuration file [default]; it has a 'key value' pair per line,
and lines that start with // are comments:
{key_table()}"""

_FORMATS: Final[dict[str, Callable[[Table], str]]] = {
    "text": str,
    "csv": Table.to_csv,
    "latex": Table.to_latex,
}
_PICTURES: Final = (".pdf", ".png", ".svg")
_TREES: Final = (".dot", ".gv", *_PICTURES)
_CHARTS: Final = (".txt", *_PICTURES)

_BATCH_NOTES: Final = """\
columns for each machine count t from 1 to the length (available_threads has no effect):
  BnB_BnB/t/finished  true if the exact solver proved its optimum within time_to_solve
  BnB_BnB/t           exact solver: makespan over all sequences and schedules
  BnB_List/t          heuristic (search with a node cap); the reference implementation has
                      the best list schedule over all sequences here
  DP/t                dynamic program
  DP_BnB/t            the dynamic program's sequence, rescheduled exactly

The settings are written besides, to PREFIXsettings.in. An interrupted run goes on after its
last complete row when the same command is given again.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``jcdp``: solve the chains of a configuration and print or draw the solutions."""
    parser = _parser(
        "jcdp", "Solve the random chains of a configuration, or given ones, with every solver.", _KEYS
    )
    _add_config(parser)
    parser.add_argument(
        "--chain",
        metavar="FILE",
        help='solve this chain instead of random ones, with the solver settings of CONFIG: JSON with "sizes" '
        'and "edges", a list of those, or what --json has printed',
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument(
        "--dot",
        metavar="FILE",
        help=f"draw the task in-tree of the best solution; the name ends in {choice(_TREES)}",
    )
    parser.add_argument(
        "--gantt",
        metavar="FILE",
        help=f"draw the schedule of the best solution; the name ends in {choice(_CHARTS)}",
    )
    return _guarded("jcdp", lambda: _solve(parser.parse_args(arguments)))


def main_batch(arguments: Sequence[str] | None = None) -> int:
    """Run ``jcdp-batch``: solve all chains of a configuration and write results files.

    Each chain is solved for all machine counts up to its length, whatever ``available_threads`` says.
    """
    parser = _parser(
        "jcdp-batch",
        "Solve all random chains of a configuration; one CSV file per length.",
        _BATCH_NOTES + _KEYS,
    )
    _add_config(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="PREFIX",
        default="results_length_",
        help="start of the file names [%(default)s]",
    )
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="worker processes [%(default)s]")

    def run() -> None:
        options = parser.parse_args(arguments)
        config = read_config(options.config)
        check_folder(options.output)
        before = [_size(f"{options.output}{length}.csv") for length in config.length]
        # A polite kill is an interrupt, too: workers end, rows stay.
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            paths = run_batch(config, options.output, flavour=options.flavour, jobs=options.jobs)
        finally:
            signal.signal(signal.SIGTERM, previous)
        for path, size in zip(paths, before, strict=True):
            note = ": complete already" if _size(path) == size else ""
            print(f"{path}{note}")

    return _guarded(
        "jcdp-batch", run, "interrupted; the rows so far are kept, the same command goes on after them"
    )


def main_stats(arguments: Sequence[str] | None = None) -> int:
    """Run ``jcdp-stats``: print tables of results files and draw box plots."""
    parser = _parser(
        "jcdp-stats",
        "Tables of C = optimum / makespan from results files, for the finished solves and for all chains.",
        "In the tables, 1 means that C is 1 for all chains, and 1.00 that it rounds to 1. Where the\n"
        "optimum is not proved, the best makespan found stands for it in the tables of all chains.",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="results file of jcdp-batch or of the publication"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FIG",
        help=f"draw box plots of all chains; the name ends in {choice(_PICTURES)}",
    )
    parser.add_argument(
        "--format", choices=sorted(_FORMATS), default="text", help="of the tables [%(default)s]"
    )
    parser.add_argument(
        "--solver", choices=SOLVER_COLUMNS[1:], default="DP", help="to compare with the optimum [%(default)s]"
    )
    return _guarded("jcdp-stats", lambda: _summarize(parser.parse_args(arguments)))


def _parser(program: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Return a parser whose help keeps the line breaks of *epilog*."""
    parser = argparse.ArgumentParser(
        program, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"{program} {jcdp_core.__version__}")
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a stream of chains."""
    parser.add_argument("config", metavar="CONFIG", help="configuration file")
    parser.add_argument(
        "--flavour",
        choices=get_args(Flavour),
        default="libstdc++",
        help="C++ library whose random chains to draw [%(default)s]",
    )


def _size(path: str | Path) -> int | None:
    """Return the size of a file, None if there is none."""
    return Path(path).stat().st_size if Path(path).exists() else None


def _guarded(program: str, run: Callable[[], None], interrupted: str = "interrupted") -> int:
    """Run a command; turn errors into a message and an exit status: 0, 1 after an error, 130 after Ctrl-C."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names of files may have signs that an encoding has not
    try:
        run()
        print(end="", flush=True)  # unlike sys.stdout.flush, also where standard output is closed
    except KeyboardInterrupt as interrupt:
        notes = (interrupted, *getattr(interrupt, "__notes__", ()))
        print(f"{program}: {'; '.join(notes)}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has gone, as in `jcdp ... | head`; keep the shutdown from flushing again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"{program}: error: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return 1
    except (JcdpError, ImportError) as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 1
    return 0


def _solve(options: argparse.Namespace) -> None:
    """Carry out ``jcdp``."""
    _check_drawing(options.dot, _TREES)
    _check_drawing(options.gantt, _CHARTS)
    config = read_config(options.config)
    is_random = options.chain is None
    chains = ChainGenerator(config, options.flavour) if is_random else read_chains(options.chain)
    if (options.dot or options.gantt) and len(chains) > 1:
        one = "set amount to 1 and length to one number" if is_random else "give a file of one"
        file = options.config if is_random else options.chain
        raise ConfigError(f"{file}: --dot and --gantt draw one chain, but there are {len(chains)}; {one}")
    reports: list[dict[str, Any]] = []
    if not options.json:
        source = f"random stream of {options.flavour}" if is_random else f"chains of {options.chain}"
        print(settings_text(config, source, is_random=is_random))
    try:
        for chain in chains:
            solutions = compare(chain, config, config.machines)
            # Drawn first: a reader such as head may have gone before all is printed.
            name = min(solutions, key=lambda name: solutions[name].makespan)
            _draw(name, solutions[name], options)
            if options.json:
                reports.append(chain_json(chain, solutions))
            else:
                print(f"\n{chain_text(chain, solutions)}", flush=True)
    finally:  # an interrupt leaves a document, too: of the chains so far
        if options.json:
            origin = {"flavour": options.flavour} if is_random else {"chain": options.chain}
            document = {"settings": settings_json(config, **origin), "chains": reports}
            print(_with_numbers_in_lines(json.dumps(document, indent=2)))


def _with_numbers_in_lines(document: str) -> str:
    """Join the lines of each list of numbers in JSON that has one line for each."""
    numbers = r"\[\n[\s\d.,eE+-]*\]"  # no string has a line break
    return re.sub(numbers, lambda found: f"[{' '.join(found[0][1:-1].split())}]", document)


def _check_drawing(name: str | None, endings: Sequence[str]) -> None:
    """Refuse a drawing that cannot be written, or not without a package that is missing."""
    check_file(name, endings)
    if name is not None and Path(name).suffix.lower() in _PICTURES:
        plain = " or ".join(ending for ending in endings if ending not in _PICTURES)
        instead = f"let its name end in {plain}, which needs nothing" if plain else "leave it out"
        figure_class(f"drawing {name!r}", instead)


def _draw(solver: str, best: Solution, options: argparse.Namespace) -> None:
    """Write the files that ``--dot`` and ``--gantt`` ask for, for the solution of this solver."""
    drawing = (best.sequence, best.schedule)
    if options.dot:
        if Path(options.dot).suffix.lower() in _PICTURES:
            draw_task_tree(*drawing).savefig(options.dot)
        else:
            Path(options.dot).write_text(task_tree_dot(*drawing), encoding="utf-8")
    if options.gantt:
        if Path(options.gantt).suffix.lower() in _PICTURES:
            machines = best.schedule.machines
            title = f"{solver}, {machines} machine{'s' * (machines != 1)}"
            draw_gantt(*drawing, title).savefig(options.gantt)
        else:
            Path(options.gantt).write_text(best.schedule.gantt(best.sequence) + "\n", encoding="utf-8")


def _check_distinct(files: Sequence[str]) -> None:
    """Refuse a file that is named twice: its chains would count twice."""
    known: set[Path] = set()
    for file in files:
        path = Path(file).resolve()
        if path in known:
            raise ConfigError(f"{file} is given twice, so that its chains would count twice; name it once")
        known.add(path)


def _summarize(options: argparse.Namespace) -> None:
    """Carry out ``jcdp-stats``."""
    _check_drawing(options.output, _PICTURES)
    _check_distinct(options.files)
    results = [read_results(path) for path in options.files]
    if all(result.length == 1 for result in results):
        raise ResultsError(
            "all chains have one link, which no solver can share among machines; give files of longer chains"
        )
    flags = [done for result in results for count, done in result.finished.items() if count > 1]
    proved = all(map(all, flags))
    tables = [] if proved else summarize(results, options.solver, finished_only=True)
    tables += summarize(results, options.solver, finished_only=False)
    if options.output:  # before printing: a reader such as head may have gone then
        draw_box_plots(results, options.solver, finished_only=False).savefig(options.output)
    print("\n\n".join(_FORMATS[options.format](table) for table in tables))
